// SPDX-License-Identifier: MIT
// Light or dark: as the system says, until somebody switches.
import { computed, effect, signal } from "@preact/signals";

const KEY = "sluice.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const systemDark = signal(system.matches);
system.addEventListener("change", () => (systemDark.value = system.matches));

const chosen = signal<string | null>(localStorage.getItem(KEY));
export const dark = computed(() => (chosen.value ? chosen.value === "dark" : systemDark.value));

export function switchTheme(): void {
  chosen.value = dark.value ? "light" : "dark";
  localStorage.setItem(KEY, chosen.value);
}

effect(() => {
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
});
