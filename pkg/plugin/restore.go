// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/copies"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/records"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// restoreOptions are the flags of kubectl winnow restore.
type restoreOptions struct {
	*session.Session
	uid, keepFor      string
	yes, again, tryIt bool
}

// flagAgain is long, so that nobody sets it without reading it.
const flagAgain = "i-know-that-it-runs-again"

func newRestore(s *session.Session) *cobra.Command {
	o := &restoreOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "restore TYPE/NAME",
		Short: "Create an object again that Winnow deleted, from its copy",
		Long: `Create an object again that Winnow deleted, from the copy that a rule with keepCopy has kept.

The command shows the object, asks, and creates it with your permissions. You need the permission to get the object, to read its copy, and
to create it. The new object has the labels, annotations and data of the old one. It has no owner and no finalizers, and it has another UID.
What was deleted along with the object does not come back. Policies apply to the new object: with --keep-for, they keep it for this long.
If a policy limits how many objects there are, it may delete another one instead.

Winnow stores a copy before it sends the DELETE. If no record says that it deleted the object in this state, the command warns you, and
does not create the object with --yes.

Objects that run and finish, such as PipelineRuns, would run again. They are restored only with --` + flagAgain + `.
Winnow knows them by their lifecycle. It does not know what other controllers do with a new object.`,
		Example: `  kubectl winnow restore configmap/settings -n team-a

  kubectl winnow restore configmap/settings -n team-a --keep-for 30d

  # What would it create? Nothing is created.
  kubectl winnow restore configmap/settings -n team-a --dry-run

  # Which copies are there?
  kubectl get cleanupcopies -n team-a`,
		Args:              oneObject,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	cmd.Flags().StringVar(&o.uid, "uid", "", "Restore the object that had this UID. Otherwise, the newest copy of this name counts.")
	cmd.Flags().StringVar(&o.keepFor, "keep-for", "", "Keep the new object for this long from now, like kubectl winnow keep: for example 30d.")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Create the object without asking.")
	cmd.Flags().BoolVar(&o.again, flagAgain, false, "Restore an object that runs and finishes, and probably runs again.")
	cmd.Flags().BoolVar(&o.tryIt, "dry-run", false, "Show the object, and let the API server check it, but do not create it.")
	return cmd
}

func (o *restoreOptions) run(ctx context.Context, args []string) error {
	object, err := o.Named(args)
	if err != nil {
		return err
	}
	client, err := o.ExpectedWinnow(ctx, "there are no copies")
	if err != nil {
		return err
	}
	found, err := o.find(ctx, client, object)
	if err != nil {
		return err
	}
	return o.restore(ctx, client, object, found)
}

// restore shows a copy, asks, and creates the object.
func (o *restoreOptions) restore(
	ctx context.Context, client gcclient.GcV1alpha1Interface, object local.Object, found *v1alpha1.CleanupCopy,
) error {
	if found.Status.RunsAgain && !o.again && !o.tryIt {
		return fmt.Errorf("%s have a lifecycle: %s would probably run again. To restore it all the same, add --%s",
			object.Resource, object.Name, flagAgain)
	}
	restored, err := o.restorable(found, time.Now())
	if err != nil {
		return err
	}
	resource, err := o.resourceOf(object, found, restored)
	if err != nil {
		return err
	}
	if err := o.show(found, restored); err != nil {
		return err
	}
	if err := o.ask(copies.Doubt(ctx, client, found)); err != nil {
		return err
	}
	return o.create(ctx, object, resource, restored)
}

// restorable returns what is created from a copy.
func (o *restoreOptions) restorable(found *v1alpha1.CleanupCopy, now time.Time) (*unstructured.Unstructured, error) {
	out, err := copies.Restorable(found)
	if err != nil || o.keepFor == "" {
		return out, err
	}
	keep, err := (&keepOptions{duration: o.keepFor}).annotations(now)
	if err != nil {
		return nil, fmt.Errorf("--keep-for=%q is no duration longer than zero; use for example 30d or 1h30m", o.keepFor)
	}
	annotations := out.GetAnnotations()
	if lengthens(keep, annotations) == nil { // Otherwise it was kept for longer already.
		if annotations == nil {
			annotations = map[string]string{}
		}
		for key, value := range keep {
			annotations[key] = *value
		}
		out.SetAnnotations(annotations)
	}
	return out, nil
}

// ask asks whether to create the object, unless a flag answers. doubt says why it is not known that Winnow deleted it; empty if it is.
func (o *restoreOptions) ask(doubt string) error {
	if doubt != "" {
		fmt.Fprintf(o.ErrOut, "\nWarning: %s\n", doubt)
	}
	switch {
	case o.tryIt:
		return nil
	case o.yes && doubt != "":
		return errors.New("nothing was created: " + doubt + ". To create the object all the same, leave out --yes, and answer the question")
	case o.yes:
		return nil
	}
	fmt.Fprint(o.ErrOut, "\nCreate this object? Type yes to create it: ")
	answer, _ := bufio.NewReader(o.In).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("nothing was created")
	}
	return nil
}

// find returns the newest copy of an object, with its content. If there is none, the error says what is known instead.
func (o *restoreOptions) find(
	ctx context.Context, client gcclient.GcV1alpha1Interface, object local.Object,
) (*v1alpha1.CleanupCopy, error) {
	newest, err := copies.Newest(ctx, client, object, types.UID(o.uid))
	if err != nil {
		return nil, err
	}
	if newest != nil {
		found, err := client.CleanupCopies(object.Namespace).Get(ctx, newest.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading the copy of %s/%s: %w", object.Resource, object.Name, err)
		}
		return found, nil
	}
	selector := fields.Set{gc.FieldObject: object.Resource + "/" + object.Name}
	if o.uid != "" {
		selector["metadata.name"] = o.uid
	}
	known, _, err := records.Read(ctx, client, records.Query{Namespace: object.Namespace, Limit: 1, Fields: selector.AsSelector()})
	if err != nil {
		return nil, fmt.Errorf("there is no copy of %s/%s that you may see, and Winnow does not say if it deleted it: %w",
			object.Resource, object.Name, err)
	}
	return nil, errors.New(whyNoCopy(object, known, time.Now()))
}

// whyNoCopy says why there is no copy of an object, from the newest record of its deletion.
func whyNoCopy(object local.Object, known []v1alpha1.CleanupRecord, now time.Time) string {
	none := fmt.Sprintf("there is no copy of %s/%s %s", object.Resource, object.Name, gc.InNamespace(object.Namespace))
	if len(known) == 0 {
		return none + ", and no record that Winnow deleted it; to see what it deleted: kubectl winnow history -n " + object.Namespace
	}
	s := &known[0].Status
	none += fmt.Sprintf(": %s deleted it at %s", gc.PolicyName(s.Policy.Kind, s.Policy.Name), s.DeletionTime.UTC().Format(time.RFC3339))
	switch until := s.CopyExpirationTime; {
	case until == nil:
		return none + ", by a rule without keepCopy"
	case until.Time.Before(now):
		return none + ", and kept a copy until " + until.UTC().Format(time.RFC3339)
	default:
		return none + ", and stored a copy, which somebody has removed since"
	}
}

// resourceOf returns the resource as which an object is created.
func (o *restoreOptions) resourceOf(
	object local.Object, found *v1alpha1.CleanupCopy, restored *unstructured.Unstructured,
) (*meta.RESTMapping, error) {
	mapper, err := o.Flags.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	kind := restored.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return nil, notServed(mapper, kind, found)
	case err != nil:
		return nil, err
	case mapping.Resource.GroupResource().String() != object.Resource || mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return nil, fmt.Errorf("the content of the copy is of %s, and not of %s", mapping.Resource.GroupResource(), object.Resource)
	case object.Resource == gc.ResourceSecrets:
		return nil, errors.New("there are no copies of Secrets")
	}
	return mapping, nil
}

// notServed says that a kind is not served any more in the version of a copy, and in which versions it is.
func notServed(mapper meta.RESTMapper, kind schema.GroupVersionKind, found *v1alpha1.CleanupCopy) error {
	var versions []string
	if mappings, err := mapper.RESTMappings(kind.GroupKind()); err == nil {
		for _, m := range mappings {
			versions = append(versions, m.GroupVersionKind.Version)
		}
	}
	if len(versions) == 0 {
		return fmt.Errorf("the cluster does not serve %s of %s any more, so it cannot be restored; install its CustomResourceDefinition first",
			kind.Kind, kind.GroupVersion())
	}
	return fmt.Errorf("the copy is of %s in version %s, and the cluster serves only %s. Change the content to such a version, and create it "+
		"yourself: kubectl get cleanupcopies %s -n %s -o jsonpath={.status.content}",
		kind.GroupKind(), kind.Version, strings.Join(versions, ", "), found.Name, found.Namespace)
}

// show prints what is created. If there is a question about it, it is printed where the question is.
func (o *restoreOptions) show(found *v1alpha1.CleanupCopy, restored *unstructured.Unstructured) error {
	text, err := yaml.Marshal(restored.Object)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.ErrOut, "Copied %s, kept until %s, UID %s:\n\n", output.Ago(found.Status.CopyTime.Time, time.Now()),
		found.Status.ExpirationTime.UTC().Format(time.RFC3339), found.Status.Object.UID)
	out := o.ErrOut
	if o.tryIt {
		out = o.Out
	}
	_, err = out.Write(text)
	return err
}

// create creates an object with the permissions of the caller.
func (o *restoreOptions) create(ctx context.Context, object local.Object, as *meta.RESTMapping, restored *unstructured.Unstructured) error {
	config, err := o.Flags.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	options := metav1.CreateOptions{FieldManager: "kubectl-winnow"}
	if o.tryIt {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if _, err := client.Resource(as.Resource).Namespace(object.Namespace).Create(ctx, restored, options); err != nil {
		return whyNotCreated(object, err)
	}
	if o.tryIt {
		fmt.Fprintf(o.ErrOut, "\n%s/%s would be created (dry run)\n", object.Resource, object.Name)
		return nil
	}
	fmt.Fprintf(o.ErrOut, "\n%s/%s created. Winnow deletes it again when a policy says so. To see when, or to keep it for longer:\n\n"+
		"  kubectl winnow why %[1]s/%[2]s -n %[3]s\n  kubectl winnow keep %[1]s/%[2]s -n %[3]s --for 7d\n",
		object.Resource, object.Name, object.Namespace)
	return nil
}

// whyNotCreated adds a way out to the error of the API server.
func whyNotCreated(object local.Object, err error) error {
	title := object.Resource + "/" + object.Name
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s exists %s already, and restore overwrites nothing; delete or rename it first", title,
			gc.InNamespace(object.Namespace))
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("cannot create %s: the namespace %s is being deleted, and its copies with it", title, object.Namespace)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("cannot create %s: %w. If you lack the permission: kubectl auth can-i create %s -n %s", title, err, object.Resource,
			object.Namespace)
	}
	return fmt.Errorf("cannot create %s: %w", title, err)
}
