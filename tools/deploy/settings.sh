# The settings in which the checks render and install the chart: NAME -> options of helm. Sourced.
# shellcheck disable=SC2034  # read where it is sourced

safe=security.tlsSecret=tls,security.tokensSecret=tokens,security.peerSecret=peer
declare -A settings=(
  [safe]="--set $safe"
  [insecure]="--set security.insecure=true"
  [partly]="--set security.insecure=true,security.tlsSecret=tls,scheduler.replicas=3"
  [scaled]="--set $safe,worker.kind=Deployment,worker.lanes=4,autoscaling.enabled=true
    --set monitoring.enabled=true,monitoring.tokenSecret.name=reader,monitoring.labels.team=a"
  [controller]="--set $safe,controller.enabled=true,controller.fleetConfigMap=fleet
    --set controller.authoritySecret=authority,networkPolicy.enabled=false"
  [spare]="--set $safe,controller.enabled=true,controller.fleetConfigMap=fleet
    --set controller.authoritySecret=authority,controller.replicas=2,controller.elect=postgresql
    --set controller.storeSecret=store,controller.leaseSeconds=2"
  [etcd]="--set $safe,controller.enabled=true,controller.fleetConfigMap=fleet
    --set controller.authoritySecret=authority,controller.replicas=3,controller.storeSecret=store
    --set controller.elect=etcd://etcd.db.svc:2379/street,controller.service.type=LoadBalancer"
  [everywhere]="--set $safe,worker.nodeSelector.pool=models,frontEnd.service.type=LoadBalancer
    --set frontEnd.service.annotations.a=b,image.pullSecrets={one},scheduler.policy=symphony
    --set worker.extraArgs={--default-slo-ms=50},clusterDomain=example.internal
    --set models.volume.csi.driver=nfs.csi.k8s.io,models.volume.csi.readOnly=true"
)
