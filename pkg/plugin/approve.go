// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/holds"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// approveOptions are the flags of kubectl winnow approve.
type approveOptions struct {
	*session.Session
	yes bool
}

func newApprove(s *session.Session) *cobra.Command {
	o := &approveOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "approve POLICY",
		Short: "Show what waits for approval by a policy, and approve it",
		Long: `Show what waits for approval by a policy, ask, and approve it.

If a change makes too many objects due at once, Winnow holds the policy that would delete them until somebody approves. You need the verb
approve on the policy, and the permission to list and delete the objects.

POLICY is the name of a CleanupPolicy, or ccup/NAME for a ClusterCleanupPolicy.`,
		Example: `  kubectl winnow approve defaults -n team-a
  kubectl winnow approve ccup/defaults`,
		Args:              onePolicy,
		ValidArgsFunction: s.CompletePolicy,
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

func (o *approveOptions) run(ctx context.Context, argument string) error {
	of, err := o.parsePolicy(argument)
	if err != nil {
		return err
	}
	client, err := o.ExpectedWinnow(ctx, "nothing waits for approval")
	if err != nil {
		return err
	}
	policy, err := holds.Read(ctx, client, of)
	if apierrors.IsNotFound(err) {
		return noSuchPolicy(of)
	}
	if err != nil {
		return err
	}
	ids, err := o.show(policy)
	if err != nil || len(ids) == 0 {
		return err
	}
	if !o.yes {
		if err := o.showObjects(ctx, client, policy); err != nil {
			return err
		}
		if err := o.ask(); err != nil {
			return err
		}
	}
	if err := holds.Approve(ctx, client, of, ids); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s approved\n", gc.PolicyTitle(policy.Namespace, policy.Name))
	return nil
}

// ask fails unless the user approves.
func (o *approveOptions) ask() error {
	fmt.Fprint(o.ErrOut, "\nDelete these objects? Type yes to approve: ")
	answer, _ := bufio.NewReader(o.In).ReadString('\n')
	switch answer = strings.TrimSpace(answer); {
	case answer == "yes":
		return nil
	case strings.EqualFold(answer, "y"), strings.EqualFold(answer, "yes"):
		return errors.New("nothing was approved; type the whole word: yes")
	}
	return errors.New("nothing was approved")
}

// objectsShown is how many objects are shown of those that wait.
const objectsShown = 10

// showObjects shows the first objects that wait for approval by a policy, as far as the user may see them.
func (o *approveOptions) showObjects(ctx context.Context, client gcclient.GcV1alpha1Interface, policy *holds.Policy) error {
	namespace, err := policy.WaitsIn()
	if err != nil {
		return err
	}
	selector := fmt.Sprintf("%s=%s,%s=%s", gc.FieldState, v1alpha1.CandidateHeld, gc.FieldPolicy, policy.Name)
	var found []*v1alpha1.CleanupCandidate
	for options := (metav1.ListOptions{FieldSelector: selector, Limit: 100}); len(found) <= objectsShown; {
		page, err := client.CleanupCandidates(namespace).List(ctx, options)
		if err != nil {
			o.Warn("cannot show which objects wait: " + o.Explain(err))
			return nil
		}
		for i := range page.Items {
			if c := &page.Items[i]; c.Status.Reason == string(v1alpha1.CandidateHeld) && decider(c) == policy.NamespacedName {
				found = append(found, c)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	return o.printObjects(found, namespace, selector)
}

// printObjects prints the first of these objects, and how to list all that a selector of candidates selects in a namespace.
func (o *approveOptions) printObjects(found []*v1alpha1.CleanupCandidate, namespace, selector string) error {
	if len(found) == 0 {
		return nil
	}
	t := output.NewTable("Object", "Namespace", "Due", "Rule")
	for _, c := range found[:min(objectsShown, len(found))] {
		due := "-"
		if c.Status.DueTime != nil {
			due = output.Ago(c.Status.DueTime.Time, time.Now())
		}
		t.Add(c.Status.Object.Resource+"/"+c.Status.Object.Name, c.Namespace, due, cmp.Or(c.Status.DecidedBy.Rule, "-"))
	}
	fmt.Fprintln(o.Out)
	if err := t.Print(o.Out, true); err != nil {
		return err
	}
	if len(found) > objectsShown {
		fmt.Fprintf(o.Out, "... To see all: kubectl get cand %s --field-selector %s\n", scope(namespace), selector)
	}
	return nil
}

// noSuchPolicy is the error if a policy does not exist.
func noSuchPolicy(of types.NamespacedName) error {
	if of.Namespace == "" {
		return fmt.Errorf("there is no ccup/%s; to see the cluster policies: kubectl get ccup", of.Name)
	}
	return fmt.Errorf("there is no cup/%s in namespace %s; to see the policies: kubectl get cup -n %[2]s", of.Name, of.Namespace)
}

// parsePolicy returns which policy an argument names; see holds.Read.
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
	namespace, err := o.Namespace()
	return types.NamespacedName{Namespace: namespace, Name: name}, err
}

// show prints what waits, and returns the holds that this policy must approve.
func (o *approveOptions) show(policy *holds.Policy) ([]string, error) {
	waiting, err := policy.Waiting()
	if err != nil {
		return nil, err
	}
	if len(waiting) == 0 {
		fmt.Fprintf(o.Out, "Nothing waits for approval by %s.\n", gc.PolicyTitle(policy.Namespace, policy.Name))
		return nil, nil
	}
	var ids []string
	var others []string
	t := output.NewTable("Hold", "Namespace", "Objects", "Resources", "Since", "Why")
	for i := range waiting {
		h := &waiting[i]
		namespace, since := h.Namespace, "-"
		if namespace == "" {
			namespace = "(all)"
		}
		if h.Since != nil {
			since = output.Ago(h.Since.Time, time.Now())
		}
		t.Add(h.ID, namespace, h.Objects, strings.Join(h.Resources, ","), since, h.Why)
		if h.Owner(policy.NamespacedName) == policy.NamespacedName {
			ids = append(ids, h.ID)
		} else {
			others = append(others, h.ApproveCommand(policy.Namespace, policy.Name))
		}
	}
	if err := t.Print(o.Out, true); err != nil {
		return nil, err
	}
	for _, command := range others {
		fmt.Fprintf(o.Out, "Another policy must approve: %s\n", output.OneLine(command))
	}
	return ids, nil
}
