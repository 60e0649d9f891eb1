#!/bin/bash
# As the image chrislusf/seaweedfs: its own options come first, so that those of the command win.
if [ "$1" = server ]; then
  shift
  set -- server -dir=/data -volume.max=0 -master.volumePreallocate -master.volumeSizeLimitMB=1024 "$@"
fi
exec weed -logtostderr=true "$@"
