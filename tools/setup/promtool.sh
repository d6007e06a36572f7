#!/usr/bin/env bash
# promtool.sh: .cache/promtool/promtool, which judges the metrics page in the integration tests.
source "$(dirname "$0")/lib.sh"

take_program promtool prometheus usr/bin/promtool
