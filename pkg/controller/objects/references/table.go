// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"maps"
	"slices"

	"github.com/winnow-dev/winnow/pkg/expressions"
)

const annotationsPath = "metadata.annotations"

// Builtin returns the Reader of a resource of Kubernetes itself, named as in package kinds. It is nil if the objects refer to no ConfigMap
// or Secret, and for custom resources.
func Builtin(resource string) *Reader { return readers[resource] }

// BuiltinResources returns the resources that have a Builtin, sorted.
func BuiltinResources() []string { return slices.Sorted(maps.Keys(readers)) }

var readers = func() map[string]*Reader {
	out := make(map[string]*Reader, len(table))
	for resource, rules := range table {
		r := fromRules(rules)
		r.self = map[string]To{"secrets": Secrets, "configmaps": ConfigMaps}[resource]
		out[resource] = r
	}
	return out
}()

// fromRules returns a Reader that finds what rules find.
func fromRules(rules []rule) *Reader {
	var fields [][]string
	for _, r := range rules {
		fields = append(fields, r.fields()...)
	}
	sets := arrange(rules)
	return newReader(func(o *reading) error {
		for _, s := range sets {
			if err := s.find(o); err != nil {
				return err
			}
		}
		return nil
	}, expressions.Union(fields))
}

// forget removes the references of the object to itself. It is one of to.
func (o *reading) forget(to To) {
	self := Reference{both, o.namespace, o.name}
	if _, ok := o.all[self]; ok && to != 0 {
		delete(o.all, self)
		o.add(both&^to, o.namespace, o.name)
	}
}

// table has the rules of each resource. Templates have the rules of Pods. A test compares the table with the types of k8s.io/api.
var table = map[string][]rule{
	// Pods of one template mostly have different annotations, which would have to be stored one by one. What is injected by annotation is in
	// the spec of the Pod, so only annotations that mention a ConfigMap or Secret count. The same holds for the commands and variables of a
	// Pod that a controller made: the controller's own object has them in its template.
	"pods": slices.Concat(under("spec", podSpec), []rule{{path: parse(annotationsPath), to: both, how: inPodAnnotations}},
		under("spec", texts(inPodText, nil)), under("spec", texts(inText, parse("metadata.ownerReferences[].controller")))),

	"podtemplates":           workload("template"),
	"replicationcontrollers": workload("spec.template"),
	"daemonsets.apps":        workload("spec.template"),
	"deployments.apps":       workload("spec.template"),
	"replicasets.apps":       workload("spec.template"),
	"statefulsets.apps": append(workload("spec.template"), rule{
		path: parse("spec.volumeClaimTemplates[].metadata.annotations"), to: Secrets, how: inAnnotations, everywhere: true,
	}),
	"jobs.batch":     workload("spec.template"),
	"cronjobs.batch": slices.Concat(workload("spec.jobTemplate.spec.template"), annotated("spec.jobTemplate.metadata.annotations")),
	// The revisions of StatefulSets and DaemonSets contain a template, and the revisions of other controllers anything.
	"controllerrevisions.apps": slices.Concat(workload("data.spec.template"), []rule{
		{path: parse("data"), to: both, how: inWords, unless: parse("data.spec.template.spec.containers")},
	}),

	"serviceaccounts": slices.Concat(annotated(annotationsPath), []rule{
		{path: parse("secrets[].name"), to: Secrets},
		{path: parse("imagePullSecrets[].name"), to: Secrets},
	}),
	"services": annotated(annotationsPath),
	"ingresses.networking.k8s.io": slices.Concat(annotated(annotationsPath), []rule{
		{path: parse("spec.tls[].secretName"), to: Secrets},
		{path: parse("spec.defaultBackend.resource.name"), kind: true},
		{path: parse("spec.rules[].http.paths[].backend.resource.name"), kind: true},
	}),
	"ingressclasses.networking.k8s.io": slices.Concat(annotated(annotationsPath), []rule{
		{path: parse("spec.parameters.name"), kind: true, namespace: "namespace"},
	}),

	"persistentvolumes": append(under("spec", volumeSpec),
		// external-provisioner keeps the name of the Secret that it needs for the deletion in an annotation. Templates of StorageClasses
		// may contain the name of the volume, and values of the claim.
		rule{path: parse(annotationsPath), to: both, how: inAnnotations},
		rule{path: parse("metadata.name"), to: Secrets, everywhere: true}),
	"persistentvolumeclaims": {
		{path: parse(annotationsPath), to: Secrets, how: inAnnotations, everywhere: true},
		{path: parse("metadata.name"), to: Secrets, everywhere: true},
	},
	"storageclasses.storage.k8s.io":          append(annotated(annotationsPath), rule{path: parse("parameters"), to: both, how: inParameters}),
	"volumeattributesclasses.storage.k8s.io": append(annotated(annotationsPath), rule{path: parse("parameters"), to: both, how: inParameters}),
	"volumeattachments.storage.k8s.io":       under("spec.source.inlineVolumeSpec", volumeSpec),

	// The configuration of devices is in a form of their driver.
	"resourceclaims.resource.k8s.io": {
		{path: parse("spec.devices.config[].opaque.parameters"), to: both, how: inWords},
		{path: parse("status.allocation.devices.config[].opaque.parameters"), to: both, how: inWords},
	},
	"resourceclaimtemplates.resource.k8s.io": {{path: parse("spec.spec.devices.config[].opaque.parameters"), to: both, how: inWords}},
	"deviceclasses.resource.k8s.io":          {{path: parse("spec.config[].opaque.parameters"), to: both, how: inWords}},

	// The parameters of an admission policy can be a ConfigMap. Its kind is in the policy.
	"validatingadmissionpolicybindings.admissionregistration.k8s.io": parameters,
	"mutatingadmissionpolicybindings.admissionregistration.k8s.io":   parameters,

	// Who may read an object by its name reads it through the API.
	"roles.rbac.authorization.k8s.io":        {{path: parse("rules[].resourceNames[]"), to: both}},
	"clusterroles.rbac.authorization.k8s.io": {{path: parse("rules[].resourceNames[]"), to: both}},

	// cert-manager copies the certificate of a Secret into these, and signs requests with the key in a Secret. Annotations name it.
	"validatingwebhookconfigurations.admissionregistration.k8s.io": annotated(annotationsPath),
	"mutatingwebhookconfigurations.admissionregistration.k8s.io":   annotated(annotationsPath),
	"customresourcedefinitions.apiextensions.k8s.io":               annotated(annotationsPath),
	"apiservices.apiregistration.k8s.io":                           annotated(annotationsPath),
	"certificatesigningrequests.certificates.k8s.io":               annotated(annotationsPath),

	// Only their metadata is read.
	"configmaps": annotated(annotationsPath),
	"secrets":    annotated(annotationsPath),
}

var parameters = []rule{
	{path: parse("spec.paramRef.name"), to: both, namespace: "namespace"},
	{path: parse("spec.paramRef.selector"), how: inAny},
}

// podSpec has the rules of a PodSpec.
var podSpec = slices.Concat(
	container("containers"), container("initContainers"), container("ephemeralContainers"),
	[]rule{
		{path: parse("imagePullSecrets[].name"), to: Secrets},
		{path: parse("volumes[].secret.secretName"), to: Secrets},
		{path: parse("volumes[].configMap.name"), to: ConfigMaps},
		{path: parse("volumes[].projected.sources[].secret.name"), to: Secrets},
		{path: parse("volumes[].projected.sources[].configMap.name"), to: ConfigMaps},
		{path: parse("volumes[].azureFile.secretName"), to: Secrets},
		{path: parse("volumes[].cephfs.secretRef.name"), to: Secrets},
		{path: parse("volumes[].cinder.secretRef.name"), to: Secrets},
		{path: parse("volumes[].flexVolume.secretRef.name"), to: Secrets},
		{path: parse("volumes[].iscsi.secretRef.name"), to: Secrets},
		{path: parse("volumes[].rbd.secretRef.name"), to: Secrets},
		{path: parse("volumes[].scaleIO.secretRef.name"), to: Secrets},
		{path: parse("volumes[].storageos.secretRef.name"), to: Secrets},
		{path: parse("volumes[].csi.nodePublishSecretRef.name"), to: Secrets},
		// In a form of the driver, for example secretName for file.csi.azure.com.
		{path: parse("volumes[].csi.volumeAttributes.*"), to: both, how: inWords},
		{path: parse("volumes[].flexVolume.options.*"), to: both, how: inWords},
		// Templates of StorageClasses may contain the annotations of the claim, which is named after the Pod and the volume.
		{path: parse("volumes[].ephemeral.volumeClaimTemplate.metadata.annotations"), to: Secrets, how: inAnnotations, everywhere: true},
	},
)

// volumeSpec has the rules of a PersistentVolumeSpec. In some fields, a Secret without a namespace is in the claim's namespace.
var volumeSpec = []rule{
	{path: parse("azureFile.secretName"), to: Secrets, namespace: "secretNamespace"},
	{path: parse("cephfs.secretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("cinder.secretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("flexVolume.secretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("iscsi.secretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("rbd.secretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("scaleIO.secretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("storageos.secretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("csi.controllerPublishSecretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("csi.nodeStageSecretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("csi.nodePublishSecretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("csi.controllerExpandSecretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("csi.nodeExpandSecretRef.name"), to: Secrets, namespace: "namespace"},
	{path: parse("csi.volumeAttributes.*"), to: both, how: inWords},
	{path: parse("flexVolume.options.*"), to: both, how: inWords},
}

// texts has the rules for commands, arguments and variables of containers, below a PodSpec. A controller that reads an object through the
// API mostly gets its name as an argument or variable, such as --default-ssl-certificate=ns/name.
func texts(how how, unless path) []rule {
	var out []rule
	for _, containers := range []string{"containers[].", "initContainers[].", "ephemeralContainers[]."} {
		for _, field := range []string{"command[]", "args[]", "env[].value"} {
			out = append(out, rule{path: parse(containers + field), to: both, how: how, unless: unless})
		}
	}
	return out
}

// container has the rules of the containers in a field of a PodSpec.
func container(field string) []rule {
	return under(field+"[]", []rule{
		{path: parse("env[].valueFrom.secretKeyRef.name"), to: Secrets},
		{path: parse("env[].valueFrom.configMapKeyRef.name"), to: ConfigMaps},
		{path: parse("envFrom[].secretRef.name"), to: Secrets},
		{path: parse("envFrom[].configMapRef.name"), to: ConfigMaps},
	})
}

// workload has the rules of a resource with a template of Pods at a path.
func workload(template string) []rule {
	return slices.Concat(annotated(annotationsPath), annotated(template+".metadata.annotations"), under(template+".spec", podSpec),
		under(template+".spec", texts(inText, nil)))
}

func annotated(path string) []rule { return []rule{{path: parse(path), to: both, how: inAnnotations}} }

// under returns rules for values below a path.
func under(path string, rules []rule) []rule {
	out := slices.Clone(rules)
	for i := range out {
		out[i].path = slices.Concat(parse(path), out[i].path)
	}
	return out
}
