// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

// ForgetEmpty removes the namespaces that have become empty.
func (g *Gate) ForgetEmpty() {
	for ns := range g.Touched.Emptied {
		if !ns.Empty() || g.Namespaces[ns.Name] != ns { // It was removed before, and there may be a new one with the same name.
			continue
		}
		g.ClearChanges(ns)
		g.holdsToCheck.Delete(ns)
		g.ToAnnounce.Delete(ns)
		g.ToDeliver.Delete(ns)
		g.Windows.Remove(ns)
		g.PublishConditions(ns, nil)
		delete(g.Namespaces, ns.Name)
		if len(ns.Covered) > 0 {
			g.Effects.Coverage = true
		}
	}
	clear(g.Touched.Emptied)
}
