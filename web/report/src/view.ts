// SPDX-License-Identifier: Apache-2.0
// What a view is. Adding one: a file in views/ that exports a View, and a row in views.ts.
import type { PageData } from "./profile";
import type { Page } from "./state";

export interface Opened {
  close?(): void;
  /** The selection changed, here or elsewhere. */
  selected?(): void;
  /** The box has another size. */
  resized?(): void;
  /** A key no control took; true: it was used. */
  key?(event: KeyboardEvent): boolean;
  /** What "/" focuses. */
  search?: HTMLInputElement;
}

export interface View {
  id: string; // in the address
  title: string;
  keys?: [keys: string, what: string][]; // for the help
  /** Whether there is anything of the kind; a view without data that a user could get shows how instead. */
  shown(data: PageData): boolean;
  open(root: HTMLElement, page: Page): Opened;
}
