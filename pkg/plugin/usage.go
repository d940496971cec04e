// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageTemplate is the one of cobra, without the flags that all commands have.
const usageTemplate = `Usage:
  {{.UseLine}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .LocalNonPersistentFlags.HasAvailableFlags}}

Flags:
{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{if .HasAvailableSubCommands}}
Use "{{.CommandPath}} COMMAND --help" to read about a command.{{end}}
Use "kubectl winnow options" to list the flags of all commands, such as --namespace and --context.
`

// newOptions lists the flags that all commands have, as "kubectl options" does.
func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:               "options",
		Short:             "List the flags of all commands",
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "All commands take these flags:\n\n%s", cmd.InheritedFlags().FlagUsages())
			return err
		},
	}
}

// wrongFlag says in the words of users what is wrong with a flag.
func wrongFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	what := err.Error()
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		what = fmt.Sprintf("there is no flag -%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		what = fmt.Sprintf("there is no flag --%s", unknown.GetSpecifiedName())
	case errors.As(err, &missing):
		what = fmt.Sprintf("--%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &invalid) && errors.As(err, &number):
		what = fmt.Sprintf("--%s=%q: %v", invalid.GetFlag().Name, invalid.GetValue(), number.Err)
	case errors.As(err, &invalid):
		what = fmt.Sprintf("--%s=%q: %v", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	}
	return fmt.Errorf("%s; %s", what, seeHelp(cmd))
}

func seeHelp(cmd *cobra.Command) string { return "see: " + cmd.CommandPath() + " --help" }

// noArguments is for commands without arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		if isPolicyFile(args[0]) && cmd.Flags().Lookup("filename") != nil {
			return fmt.Errorf("%s takes no arguments; did you mean -f %s?", cmd.CommandPath(), args[0])
		}
		return fmt.Errorf("%s takes no arguments, so it cannot use %q; %s", cmd.CommandPath(), args[0], seeHelp(cmd))
	}
	return nil
}

func isPolicyFile(argument string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(argument))
}

// oneObject is for commands whose argument is an object: "job/NAME", or "job NAME".
func oneObject(cmd *cobra.Command, args []string) error {
	if len(args) != 1 && len(args) != 2 {
		return fmt.Errorf("name one object: %s job/NAME", cmd.CommandPath())
	}
	return nil
}

// oneOrNoObject is like oneObject, for commands that need no object.
func oneOrNoObject(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return oneObject(cmd, args)
}

// onePolicy is for commands whose argument is a policy.
func onePolicy(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one policy: %s POLICY, or for a ClusterCleanupPolicy: %[1]s ccup/POLICY", cmd.CommandPath())
	}
	return nil
}

// unknownCommand is for the arguments of the root, which is a command only if it has none.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		return fmt.Errorf("there is no command %q; did you mean %q? To see the commands: %s --help", args[0], similar[0], cmd.CommandPath())
	}
	return fmt.Errorf("there is no command %q; to see the commands: %s --help", args[0], cmd.CommandPath())
}
