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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
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
		fmt.Fprint(o.ErrOut, "\nDelete these objects? Type yes to approve: ")
		answer, _ := bufio.NewReader(o.In).ReadString('\n')
		if strings.TrimSpace(answer) != "yes" {
			return errors.New("nothing was approved")
		}
	}
	if err := holds.Approve(ctx, client, of, ids); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s approved\n", gc.PolicyTitle(policy.Namespace, policy.Name))
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
			since = output.When(h.Since.Time, time.Now())
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
