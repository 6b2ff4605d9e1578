// Runs before the first paint, so that a chosen theme never flashes the other one. A separate file, because the
// page's content security policy allows no inline script. Later changes are made by src/ui/theme.ts.
let theme;
try {
  theme = localStorage.getItem("tiller.theme");
} catch {
  // Storage may be closed to us; the system's theme is then the right one.
}
if (theme !== "light" && theme !== "dark")
  theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
document.documentElement.dataset.theme = theme;
const around = document.querySelector("meta[name=theme-color]");
around.content = around.dataset[theme];
