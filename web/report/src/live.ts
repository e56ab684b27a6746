// SPDX-License-Identifier: Apache-2.0
// A run that goes on: asks the program that serves this page for what is there by now, until the run has ended. The
// request carries the token of the page's own address.
import { decode, inflate } from "./decode";
import type { Page } from "./state";

const PAUSE = 1000; // ms between the end of one answer and the next question
const FIRST_PAUSE = 200; // until there are figures: somebody waits for them
const TRIES = 12; // without an answer: the program has ended

export function live(page: Page): void {
  let version = "";
  let silent = 0;
  const ended = (): void => page.replace({ ...page.data, profiles: [...page.data.profiles], live: false });
  const ask = async (): Promise<void> => {
    const waiting = (): boolean => !page.data.profiles[0].summary.iterations;
    let pause = waiting() ? FIRST_PAUSE : PAUSE;
    try {
      const answer = await fetch(`data${location.search}`, { headers: version ? { "If-None-Match": version } : {}, cache: "no-store" });
      silent = 0;
      if (answer.status === 200) {
        version = answer.headers.get("ETag") ?? "";
        const ended = answer.headers.get("X-Sonde-Ended") === "1";
        const profile = decode(await inflate(new Uint8Array(await answer.arrayBuffer())));
        profile.title = page.data.profiles[0].title;
        page.replace({ profiles: [profile], comparison: null, live: !ended });
        if (ended) return;
        pause = waiting() ? FIRST_PAUSE : PAUSE;
      } else if (answer.status !== 304) return ended();
    } catch {
      if (++silent === TRIES) return ended();
      pause = 5 * PAUSE; // the machine may sleep
    }
    setTimeout(() => void ask(), pause);
  };
  void ask();
}
