#!/usr/bin/env bash
# etcd.sh: .cache/etcd/etcd, which the tests of leadership start for themselves.
source "$(dirname "$0")/lib.sh"

take_program etcd etcd-server usr/bin/etcd
