// Before anything is drawn: the theme that was chosen here, else the system's.
"use strict";
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // storage is switched off
    }
  };
  const isDark = () => (chosen() ? chosen() === "dark" : dark.matches);
  const show = () => {
    root.dataset.theme = isDark() ? "dark" : "light";
    document.getElementById("theme")?.setAttribute("aria-pressed", String(isDark()));
    document.dispatchEvent(new Event("themechange"));
  };
  show();
  dark.addEventListener("change", show);
  document.addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme").addEventListener("click", () => {
      try {
        localStorage.setItem("theme", isDark() ? "light" : "dark");
      } catch {
        root.dataset.theme = isDark() ? "light" : "dark";
        return;
      }
      show();
    });
  });
})();
