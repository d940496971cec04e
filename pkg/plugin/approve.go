// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
)

// approveOptions are those of the command approve.
type approveOptions struct {
	*plugin
	yes bool
}

func newApprove(p *plugin) *cobra.Command {
	o := &approveOptions{plugin: p}
	cmd := &cobra.Command{
		Use:   "approve POLICY",
		Short: "Show what waits for approval by a policy, and approve it",
		Long: `Show what waits for approval by a policy, ask, and approve it.

If a change makes too many objects due at once, Winnow holds the policy that would delete them until somebody approves. You need the verb
approve on the policy, and the permission to list and delete the objects.

POLICY is the name of a CleanupPolicy, or ccup/NAME for a ClusterCleanupPolicy.`,
		Example: `  kubectl winnow approve defaults -n team-a
  kubectl winnow approve ccup/defaults`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completePolicy,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Approve without asking.")
	return cmd
}

// policyKinds are the names of both kinds of policies, for arguments. The value is whether they are cluster policies.
var policyKinds = map[string]bool{
	"cup": false, "cleanuppolicy": false, "cleanuppolicies": false, "cleanuppolicies.gc.winnow.dev": false,
	"ccup": true, "clustercleanuppolicy": true, "clustercleanuppolicies": true, "clustercleanuppolicies.gc.winnow.dev": true,
}

// held is a policy with holds.
type held struct {
	types.NamespacedName // without a namespace if it is a cluster policy
	resourceVersion      string
	annotations          map[string]string
	holds                []v1alpha1.PolicyHold
}

func (o *approveOptions) run(ctx context.Context, argument string) error {
	of, err := o.parsePolicy(argument)
	if err != nil {
		return err
	}
	cluster, err := o.cluster()
	if err != nil {
		return err
	}
	if err := expectWinnow(ctx, cluster, "nothing waits for approval"); err != nil {
		return err
	}
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return err
	}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	policy, err := policyNamed(ctx, clients.GcV1alpha1(), of)
	if err != nil {
		return err
	}
	ids, err := o.show(policy)
	if err != nil || len(ids) == 0 {
		return err
	}
	if !o.yes {
		fmt.Fprint(o.ErrOut, "\nDelete these objects? Type yes to approve: ")
		answer, _ := bufio.NewReader(o.In).ReadString('\n')
		if strings.TrimSpace(answer) != "yes" {
			return errors.New("nothing was approved")
		}
	}
	if err := approve(ctx, clients.GcV1alpha1(), of, ids); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s approved\n", gc.PolicyTitle(policy.Namespace, policy.Name))
	return nil
}

// parsePolicy returns which policy an argument names; see policyNamed.
func (o *approveOptions) parsePolicy(argument string) (types.NamespacedName, error) {
	kind, name, ok := strings.Cut(argument, "/")
	if !ok {
		kind, name = "cup", argument
	}
	switch ofCluster, known := policyKinds[strings.ToLower(kind)]; {
	case !known:
		return types.NamespacedName{}, fmt.Errorf("%q is no kind of policy: use cup/NAME or ccup/NAME", kind)
	case ofCluster:
		return types.NamespacedName{Name: name}, nil
	}
	namespace, err := o.namespace()
	return types.NamespacedName{Namespace: namespace, Name: name}, err
}

// policyNamed reads a policy. Without a namespace, it is a cluster policy.
func policyNamed(ctx context.Context, client gcclient.GcV1alpha1Interface, of types.NamespacedName) (*held, error) {
	if of.Namespace == "" {
		p, err := client.ClusterCleanupPolicies().Get(ctx, of.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return &held{of, p.ResourceVersion, p.Annotations, p.Status.Holds}, nil
	}
	p, err := client.CleanupPolicies(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return &held{of, p.ResourceVersion, p.Annotations, p.Status.Holds}, nil
}

// waiting returns the holds that are not approved yet.
func (h *held) waiting() ([]gc.PolicyHold, error) {
	approved := gc.ApprovedHolds(h.annotations[gc.AnnotationApprovedHold])
	var out []gc.PolicyHold
	for i := range h.holds {
		if h.holds[i].Policy == "" && slices.Contains(approved, h.holds[i].ID) { // The status lags behind approvals.
			continue
		}
		hold := gc.PolicyHold{}
		if err := v1alpha1.Convert_v1alpha1_PolicyHold_To_gc_PolicyHold(&h.holds[i], &hold, nil); err != nil {
			return nil, err
		}
		out = append(out, hold)
	}
	return out, nil
}

// show prints what waits, and returns the holds that this policy must approve.
func (o *approveOptions) show(policy *held) ([]string, error) {
	waiting, err := policy.waiting()
	if err != nil {
		return nil, err
	}
	if len(waiting) == 0 {
		fmt.Fprintf(o.Out, "Nothing waits for approval by %s.\n", gc.PolicyTitle(policy.Namespace, policy.Name))
		return nil, nil
	}
	var ids []string
	var others []string
	t := newTable("Hold", "Namespace", "Objects", "Resources", "Since", "Why")
	for i := range waiting {
		h := &waiting[i]
		namespace, since := h.Namespace, "-"
		if namespace == "" {
			namespace = "(all)"
		}
		if h.Since != nil {
			since = when(h.Since.Time, time.Now())
		}
		t.add(h.ID, namespace, h.Objects, strings.Join(h.Resources, ","), since, h.Why)
		if h.Owner(policy.NamespacedName) == policy.NamespacedName {
			ids = append(ids, h.ID)
		} else {
			others = append(others, h.ApproveCommand(policy.Namespace, policy.Name))
		}
	}
	if err := t.print(o.Out, true); err != nil {
		return nil, err
	}
	for _, command := range others {
		fmt.Fprintf(o.Out, "Another policy must approve: %s\n", oneLine(command))
	}
	return ids, nil
}

// approve approves holds of a policy, besides those that are approved when it writes. It reads the policy again: since a person was asked,
// somebody may have approved another hold, or withdrawn an approval.
func approve(ctx context.Context, client gcclient.GcV1alpha1Interface, of types.NamespacedName, ids []string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		policy, err := policyNamed(ctx, client, of)
		if err != nil {
			return err
		}
		patch, err := policy.approving(ids)
		if err != nil {
			return err
		}
		options := metav1.PatchOptions{FieldManager: "kubectl-winnow"}
		if of.Namespace == "" {
			_, err = client.ClusterCleanupPolicies().Patch(ctx, of.Name, types.MergePatchType, patch, options)
		} else {
			_, err = client.CleanupPolicies(of.Namespace).Patch(ctx, of.Name, types.MergePatchType, patch, options)
		}
		return err
	})
}

// approving returns the patch that also approves these holds, if nobody has written the policy since it was read.
func (h *held) approving(ids []string) ([]byte, error) {
	all := gc.ApprovedHolds(h.annotations[gc.AnnotationApprovedHold])
	for _, id := range ids {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": h.resourceVersion,
		"annotations":     map[string]string{gc.AnnotationApprovedHold: strings.Join(all, ",")},
	}})
}
