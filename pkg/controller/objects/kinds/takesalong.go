// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

// takesAlong are resources whose objects own or stand for data. Their deletion takes the data along, after "deletes", with what keeps it.
var takesAlong = map[string]string{
	// https://kubevirt.io/user-guide/storage/containerized_data_importer/: a DataVolume controls its claim.
	"datavolumes.cdi.kubevirt.io": "their PersistentVolumeClaims, and the data in them; to keep the data, remove the owner " +
		"references of the claims first",
	// https://kubevirt.io/user-guide/storage/disks_and_volumes/#datavolume-vm-behavior
	"virtualmachines.kubevirt.io": "the DataVolumes and PersistentVolumeClaims of their dataVolumeTemplates, and the data in " +
		"them; to keep the data, remove the owner references of the DataVolumes first",
	// https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#persistentvolumeclaim-retention
	"statefulsets.apps": "their PersistentVolumeClaims, and the data in them, if their " +
		"spec.persistentVolumeClaimRetentionPolicy.whenDeleted is Delete; to keep the data, set it to Retain",
	// https://kubernetes.io/docs/concepts/storage/volume-snapshots/#deletion-policy
	"volumesnapshots.snapshot.storage.k8s.io": "the snapshots in the storage, if the deletionPolicy of their " +
		"VolumeSnapshotContents is Delete; to keep these, set it to Retain",
	// https://cloudnative-pg.io/documentation/current/storage/: a Cluster owns its claims.
	"clusters.postgresql.cnpg.io": "their PersistentVolumeClaims, and the databases in them; to keep these, back them up first",
	// https://www.elastic.co/docs/deploy-manage/deploy/cloud-on-k8s/volume-claim-templates
	"elasticsearches.elasticsearch.k8s.elastic.co": "their PersistentVolumeClaims, and the data in them, unless their " +
		"spec.volumeClaimDeletePolicy is DeleteOnScaledownOnly; to keep the data, set that",
	// https://rook.io/docs/rook/latest/Storage-Configuration/Object-Storage-RGW/ceph-object-bucket-claim/
	"objectbucketclaims.objectbucket.io": "their buckets, and the data in them, if the reclaimPolicy of the StorageClass is " +
		"Delete; to keep the data, use one with Retain",
	// https://github.com/kubeflow/katib: Trials have the finalizer clean-metrics-in-db.
	"experiments.kubeflow.org": "their Trials, and the metrics of these in the database of Katib; to keep the metrics, copy them first",
	"trials.kubeflow.org":      "their metrics in the database of Katib; to keep the metrics, copy them first",
}

// TakesAlong returns which data goes with the objects of a resource, and how to keep it; empty if nothing is known of any.
func TakesAlong(resource string) string { return takesAlong[resource] }
