// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"

	"github.com/spf13/pflag"

	"github.com/winnow-dev/winnow/pkg/controller/write/notify"
)

// NotifyOptions are the flags that say where events about deletions and holds are sent.
type NotifyOptions struct {
	// URL of the receiver; empty if nothing is sent.
	URL string
	// SourcePrefix begins the source of each event.
	SourcePrefix string
	// CAFile has the authorities of the receiver; empty for those of the system.
	CAFile string
	// TokenFile, ClientCertFile and ClientKeyFile authenticate Winnow; empty for nothing.
	TokenFile, ClientCertFile, ClientKeyFile string
}

// AddFlags adds the flags of notifications.
func (o *NotifyOptions) AddFlags(notifications *pflag.FlagSet) {
	notifications.StringVar(&o.URL, "notify-url", o.URL,
		"https URL to which Winnow sends CloudEvents about deletions, and about changes that wait for approval, in JSON batches. http is "+
			"allowed only to localhost. The URL is no place for secrets: everybody who can read these flags sees it. If unset, nothing is sent.")
	notifications.StringVar(&o.SourcePrefix, "notify-source-prefix", o.SourcePrefix,
		"Beginning of the source of each event, such as /clusters/prod or https://prod.example.org, if several clusters send to one receiver.")
	notifications.StringVar(&o.CAFile, "notify-ca-file", o.CAFile,
		"File with the certificate authorities by which Winnow verifies the certificate of the receiver. If unset, the authorities of the "+
			"system. This file and the next ones are read again before each request, so you can renew them.")
	notifications.StringVar(&o.TokenFile, "notify-token-file", o.TokenFile,
		"File with a bearer token that Winnow sends to the receiver.")
	notifications.StringVar(&o.ClientCertFile, "notify-client-cert-file", o.ClientCertFile,
		"File with the certificate by which Winnow authenticates itself to the receiver.")
	notifications.StringVar(&o.ClientKeyFile, "notify-client-key-file", o.ClientKeyFile,
		"File with the private key of --notify-client-cert-file.")
}

// Validate returns the errors in the flags. It does not read the files: a Secret that is broken must not keep Winnow from starting.
func (o *NotifyOptions) Validate() []error {
	var errs []error
	if (o.ClientCertFile == "") != (o.ClientKeyFile == "") {
		errs = append(errs, fmt.Errorf("--notify-client-cert-file (%q) and --notify-client-key-file (%q) must be given together",
			o.ClientCertFile, o.ClientKeyFile))
	}
	if o.URL == "" {
		if o.CAFile != "" || o.TokenFile != "" || o.ClientCertFile != "" || o.SourcePrefix != "" {
			errs = append(errs, errors.New(
				"--notify-source-prefix, --notify-ca-file, --notify-token-file and --notify-client-cert-file need --notify-url"))
		}
		return errs
	}
	if err := validateReceiver(o.URL); err != nil {
		errs = append(errs, fmt.Errorf("--notify-url: %w", err))
	}
	if len(o.SourcePrefix) > sourcePrefixMost || !sourcePrefixes.MatchString(o.SourcePrefix) {
		errs = append(errs, fmt.Errorf("--notify-source-prefix is %q; write it as /PATH or https://HOST/PATH, without a slash at the end, and "+
			"with at most %d characters", o.SourcePrefix, sourcePrefixMost))
	}
	return errs
}

const sourcePrefixMost = 200

// sourcePrefixes are the values of --notify-source-prefix after which a path makes a URI, or a reference to one.
var sourcePrefixes = regexp.MustCompile(`^(https://[A-Za-z0-9.:-]+)?(/[A-Za-z0-9._~-]+)*$`)

// validateReceiver does not repeat the URL, because somebody may have put a secret into it.
func validateReceiver(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("it is no URL; write it as https://HOST/PATH")
	case u.Hostname() == "":
		return errors.New("it has no host; write it as https://HOST/PATH")
	case u.User != nil:
		return errors.New("it contains a user or a password; write a bearer token into a file, and set --notify-token-file")
	case u.Fragment != "":
		return errors.New("it has a fragment (#...), which is not sent; remove it")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	case u.Scheme == "http":
		return fmt.Errorf("it begins with http, so anybody on the way to %s could read the events and the token; use https. "+
			"http is allowed only to localhost, 127.0.0.1 and [::1]", u.Hostname())
	}
	return fmt.Errorf("it begins with %q; write it as https://HOST/PATH", u.Scheme)
}

// isLoopback reports whether requests to a host stay on this host.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// config returns what the flags say.
func (o *NotifyOptions) config() notify.Config {
	return notify.Config{
		URL: o.URL, SourcePrefix: o.SourcePrefix, CAFile: o.CAFile, TokenFile: o.TokenFile,
		ClientCertFile: o.ClientCertFile, ClientKeyFile: o.ClientKeyFile,
	}
}
