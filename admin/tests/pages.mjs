/** Every page (and drawer, and panel) that is looked at: by axe, for errors on the console, and as a picture. */
export const PAGES = () => [
  { name: "overview", path: "/dashboard" },
  { name: "people", path: "/people" },
  { name: "rules-words", path: "/rules" },
  { name: "rules-errors", path: "/rules?view=errors" },
  { name: "rules-edit", path: "/rules?view=errors&id=1" },
  { name: "missing", path: "/nothing-here" },
];
