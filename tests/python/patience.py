# SPDX-License-Identifier: Apache-2.0
"""How long a test waits for another process, in seconds. It only keeps a test from waiting for ever: a machine that is
slow, or busy with other work, does not come near it. Nothing may depend on how long something takes."""

PATIENCE = 1800
