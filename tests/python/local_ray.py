# SPDX-License-Identifier: Apache-2.0
"""Import this before ray: Ray then stays on the loopback interface (the second variable makes it behave as on systems
with a firewall that asks), tells nobody that it is used, and writes nothing to the terminal or the home folder."""

import os

os.environ.update(
    RAY_USAGE_STATS_ENABLED="0",
    RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
    RAY_AUTH_MODE="disabled",
    RAY_DATA_DISABLE_PROGRESS_BARS="1",
    RAY_DEDUP_LOGS="0",
    RAY_ENABLE_METRICS_COLLECTION="0",
)
