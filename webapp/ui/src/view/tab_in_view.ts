// SPDX-License-Identifier: MIT
// Where the navigation is one line that scrolls, the tab of the screen that is shown is in view.
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export function useTabInView(shown: unknown): RefObject<HTMLElement> {
  const self = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const element = self.current;
    const tab = element?.querySelector<HTMLElement>("[aria-current]");
    if (!element || !tab) return;
    const at = tab.getBoundingClientRect().left - element.getBoundingClientRect().left + element.scrollLeft;
    element.scrollLeft = at - (element.clientWidth - tab.offsetWidth) / 2;
  }, [shown]);
  return self;
}
