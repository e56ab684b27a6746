// SPDX-License-Identifier: Apache-2.0
// layout.worker.ts as one bundled script: build.mjs makes it.
declare module "worker-text" {
  const text: string;
  export default text;
}
