// Runs before the first paint, so that a chosen theme never flashes the other one. A separate file, because the
// page's content security policy allows no inline script.
try {
  const theme = localStorage.getItem("tiller.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be closed to us; the system's theme is then the right one.
}
