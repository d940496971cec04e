// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
	"github.com/winnow-dev/winnow/pkg/version"
)

// versionOptions are the flags of kubectl winnow version.
type versionOptions struct {
	*session.Session
	format output.Format
	client bool
}

// versions are the versions for json and yaml.
type versions struct {
	ClientVersion string `json:"clientVersion"`
	// ServerVersion is empty if there is no Winnow in the cluster, or if it was not asked.
	ServerVersion string `json:"serverVersion,omitempty"`
}

func newVersion(s *session.Session) *cobra.Command {
	o := &versionOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of this plugin, and of Winnow in the cluster",
		Example: `  kubectl winnow version

  # Without asking a cluster
  kubectl winnow version --client`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.format.AddFlag(cmd, "json", "yaml")
	cmd.Flags().BoolVar(&o.client, "client", false, "Show only the version of this plugin, and ask no cluster.")
	return cmd
}

// run prints the version of the plugin also if the server does not answer.
func (o *versionOptions) run(ctx context.Context) error {
	if err := o.format.Validate(); err != nil {
		return err
	}
	v := versions{ClientVersion: version.Get()}
	installed, failed := false, error(nil)
	if !o.client {
		v.ServerVersion, installed, failed = o.server(ctx)
	}
	if printed, err := o.format.Document(o.Out, v); printed {
		if err != nil {
			return err
		}
		return failed
	}
	fmt.Fprintln(o.Out, "Client Version:", version.Long())
	switch {
	case o.client || failed != nil:
	case installed:
		fmt.Fprintln(o.Out, "Server Version:", v.ServerVersion)
	default:
		fmt.Fprintln(o.Out, "Server Version: none: there is no Winnow in this cluster")
	}
	return failed
}

// server returns the version of Winnow in the cluster, which stands in its OpenAPI document: an API server passes on no other path.
func (o *versionOptions) server(ctx context.Context) (name string, installed bool, err error) {
	cluster, err := o.Cluster()
	if err != nil {
		return "", false, err
	}
	if installed, err = cluster.Installed(ctx); err != nil || !installed {
		return "", installed, err
	}
	client, err := o.Winnow()
	if err != nil {
		return "", installed, err
	}
	path := "/openapi/v3/apis/" + v1alpha1.SchemeGroupVersion.String()
	content, err := client.RESTClient().Get().AbsPath(path).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		// The API server reads the documents of an aggregated API server some time after it passes on requests.
		return "", installed, errors.New("this cluster has Winnow, but the API server has not read its version yet: try again in a minute")
	}
	if err != nil {
		return "", installed, fmt.Errorf("reading %s: %w", path, err)
	}
	var document struct{ Info struct{ Version string } }
	err = json.Unmarshal(content, &document)
	return document.Info.Version, installed, err
}
