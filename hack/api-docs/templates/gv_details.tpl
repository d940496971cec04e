{{- define "gvDetails" }}
All kinds of `{{ .GroupVersionString }}`, and the types of their fields in alphabetical order. `kubectl explain` says the same. [For teams](../teams.md)
and [For operators](../operators.md) explain how the fields work together.

| kind | resource |
| --- | --- |
| [CleanupPolicy](#cleanuppolicy) | `cleanuppolicies`, short name `cup` |
| [ClusterCleanupPolicy](#clustercleanuppolicy) | `clustercleanuppolicies`, short name `ccup` |
| [ResourceLifecycle](#resourcelifecycle) | `resourcelifecycles`, short name `rlc` |
| [CleanupCandidate](#cleanupcandidate) | `cleanupcandidates`, short name `cand`; read only, computed for each request |
| [CleanupRecord](#cleanuprecord) | `cleanuprecords`, short name `crec`; read only |
| [CleanupCopy](#cleanupcopy) | `cleanupcopies`, short name `ccopy`; read only |
| [CleanupReview](#cleanupreview) | `cleanupreviews`; create only, the answer is not stored |
| [ClusterCleanupReview](#clustercleanupreview) | `clustercleanupreviews`; create only, the answer is not stored |
{{ range .SortedTypes }}{{ template "type" . }}{{ end -}}
{{ end -}}
