// Runs before the first paint and sets the chosen theme, so that no page flashes in the other one.
{
  const theme = localStorage.getItem("tollgate.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
