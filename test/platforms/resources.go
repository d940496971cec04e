// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

// Schemas of fields that several resources have.
var (
	text    = map[string]any{"type": "string"}
	moment  = map[string]any{"type": "string", "format": "date-time"}
	seconds = map[string]any{"type": "integer", "format": "int32"}
	count   = map[string]any{"type": "integer", "format": "int32"}
	// Some controllers write null.
	textOrNull   = map[string]any{"type": "string", "nullable": true}
	momentOrNull = map[string]any{"type": "string", "format": "date-time", "nullable": true}

	// conditions have the fields of metav1.Condition, and of the older forms without lastTransitionTime.
	conditions = map[string]any{"type": "array", "items": map[string]any{
		"type": "object", "required": []any{"type", "status"}, "x-kubernetes-preserve-unknown-fields": true,
		"properties": map[string]any{
			"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": moment,
		},
	}}
	ttlStrategy = object(map[string]any{
		"secondsAfterCompletion": seconds, "secondsAfterSuccess": seconds, "secondsAfterFailure": seconds,
	})
)

// kubeflow returns an older training job of Kubeflow; see
// https://github.com/kubeflow/training-operator/blob/release-1.9/docs/api/kubeflow.org_v1_generated.asciidoc.
func kubeflow(kind, plural string, versions ...string) Resource {
	return Resource{
		Group: "kubeflow.org", Kind: kind, Plural: plural, Versions: append([]string{"v1"}, versions...),
		Spec:   map[string]any{"runPolicy": object(map[string]any{"ttlSecondsAfterFinished": seconds})},
		Status: map[string]any{"conditions": conditions, "startTime": moment, "completionTime": moment},
	}
}

// All returns the resources that have a built-in lifecycle, with the fields of their public API docs that it reads. The files of the
// lifecycles name the docs.
func All() []Resource {
	return []Resource{
		Workflows, AnalysisRuns, TaskRuns, PipelineRuns, JobSets, TrainJobs, RayJobs, SparkApplications, VolcanoJobs, Workloads,
		kubeflow("PyTorchJob", "pytorchjobs"), kubeflow("TFJob", "tfjobs"), kubeflow("MPIJob", "mpijobs", "v2beta1"),
		kubeflow("XGBoostJob", "xgboostjobs"), kubeflow("PaddleJob", "paddlejobs"), kubeflow("JAXJob", "jaxjobs"),
		Experiments, Trials, ProwJobs, FlyteWorkflows, DaskJobs, AppWrappers,
	}
}

// Resources with a built-in lifecycle.
var (
	Workflows = Resource{
		Group: "argoproj.io", Kind: "Workflow", Plural: "workflows", Versions: []string{"v1alpha1"},
		Spec:   map[string]any{"ttlStrategy": ttlStrategy},
		Status: map[string]any{"phase": text, "startedAt": moment, "finishedAt": moment},
	}
	AnalysisRuns = Resource{
		Group: "argoproj.io", Kind: "AnalysisRun", Plural: "analysisruns", Versions: []string{"v1alpha1"},
		Spec:   map[string]any{"ttlStrategy": ttlStrategy},
		Status: map[string]any{"phase": text, "startedAt": moment, "completedAt": moment},
	}
	TaskRuns = Resource{
		Group: "tekton.dev", Kind: "TaskRun", Plural: "taskruns", Versions: []string{"v1"},
		Status: map[string]any{"conditions": conditions, "startTime": moment, "completionTime": moment},
	}
	PipelineRuns = Resource{
		Group: "tekton.dev", Kind: "PipelineRun", Plural: "pipelineruns", Versions: []string{"v1"},
		Status: map[string]any{"conditions": conditions, "startTime": moment, "completionTime": moment},
	}
	JobSets = Resource{
		Group: "jobset.x-k8s.io", Kind: "JobSet", Plural: "jobsets", Versions: []string{"v1alpha2"},
		Spec:   map[string]any{"ttlSecondsAfterFinished": seconds},
		Status: map[string]any{"conditions": conditions, "terminalState": text},
	}
	TrainJobs = Resource{
		Group: "trainer.kubeflow.org", Kind: "TrainJob", Plural: "trainjobs", Versions: []string{"v1alpha1"},
		Spec: map[string]any{
			"ttlSecondsAfterFinished": seconds,
			"activeDeadlineSeconds": map[string]any{
				"type": "integer", "format": "int64", "minimum": 1,
				"x-kubernetes-validations": []any{map[string]any{"rule": "self == oldSelf", "message": "field is immutable"}},
			},
		},
		Status: map[string]any{"conditions": conditions},
	}
	RayJobs = Resource{
		Group: "ray.io", Kind: "RayJob", Plural: "rayjobs", Versions: []string{"v1"},
		Spec:   map[string]any{"schedule": text, "ttlSecondsAfterFinished": seconds},
		Status: map[string]any{"jobStatus": text, "jobDeploymentStatus": text, "startTime": moment, "endTime": moment},
	}
	SparkApplications = Resource{
		Group: "sparkoperator.k8s.io", Kind: "SparkApplication", Plural: "sparkapplications", Versions: []string{"v1beta2"},
		Spec: map[string]any{"timeToLiveSeconds": map[string]any{"type": "integer", "format": "int64"}},
		Status: map[string]any{
			"applicationState": object(map[string]any{"state": text, "errorMessage": text}),
			"terminationTime":  momentOrNull,
		},
	}
	VolcanoJobs = Resource{
		Group: "batch.volcano.sh", Kind: "Job", Plural: "jobs", Versions: []string{"v1alpha1"},
		Spec:   map[string]any{"ttlSecondsAfterFinished": seconds},
		Status: map[string]any{"state": object(map[string]any{"phase": text, "reason": text, "lastTransitionTime": moment})},
	}
	Workloads = Resource{
		Group: "kueue.x-k8s.io", Kind: "Workload", Plural: "workloads", Versions: []string{"v1beta1"},
		Status: map[string]any{"conditions": conditions},
	}
	Experiments = Resource{
		Group: "kubeflow.org", Kind: "Experiment", Plural: "experiments", Versions: []string{"v1beta1"},
		Spec: map[string]any{"maxTrialCount": count, "resumePolicy": text},
		Status: map[string]any{
			"conditions": conditions, "startTime": moment, "completionTime": momentOrNull,
			"trialsRunning": count,
		},
	}
	Trials = Resource{
		Group: "kubeflow.org", Kind: "Trial", Plural: "trials", Versions: []string{"v1beta1"},
		Status: map[string]any{"conditions": conditions, "startTime": moment, "completionTime": momentOrNull},
	}
	ProwJobs = Resource{
		Group: "prow.k8s.io", Kind: "ProwJob", Plural: "prowjobs", Versions: []string{"v1"},
		Spec: map[string]any{"type": text, "job": text},
		Status: map[string]any{
			"state": text, "startTime": moment, "completionTime": moment,
			"prev_report_states": map[string]any{"type": "object", "additionalProperties": text},
		},
	}
	FlyteWorkflows = Resource{
		Group: "flyte.lyft.com", Kind: "FlyteWorkflow", Plural: "flyteworkflows", Versions: []string{"v1alpha1"},
		Status: map[string]any{"phase": map[string]any{"type": "integer"}, "startedAt": moment, "stoppedAt": moment},
	}
	DaskJobs = Resource{
		Group: "kubernetes.dask.org", Kind: "DaskJob", Plural: "daskjobs", Versions: []string{"v1"},
		Status: map[string]any{"jobStatus": textOrNull, "startTime": momentOrNull, "endTime": momentOrNull},
	}
	AppWrappers = Resource{
		Group: "workload.codeflare.dev", Kind: "AppWrapper", Plural: "appwrappers", Versions: []string{"v1beta2"},
		Status: map[string]any{"phase": text, "conditions": conditions},
	}
)
