/** Every page (and drawer, and panel) that is looked at: by axe, for errors on the console, and as a picture. */
export const PAGES = () => [
  { name: "overview", path: "/dashboard" },
  { name: "people", path: "/people" },
  { name: "missing", path: "/nothing-here" },
];
