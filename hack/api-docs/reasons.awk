# Copyright 2026 The Winnow Authors.
# SPDX-License-Identifier: Apache-2.0

# Makes a table of what the description of a field lists, after "If SOMETHING:", as "NAME, NAME: meaning". It stands below the table of fields.

/<br>- / {
  split($0, cells, " [|] ")
  field = substr(cells[1], 4, index(substr(cells[1], 4), "`") - 1)
  table = table "\n### Values of " field "\n\n| value | if | meaning |\n| --- | --- | --- |\n"
  groups = split(cells[2], group, "<br><br>If ")
  for (g = 2; g <= groups; g++) {
    items = split(group[g], item, ":?<br>- ")
    for (i = 2; i <= items; i++) {
      colon = index(item[i], ": ")
      names = split(substr(item[i], 1, colon - 1), name, ", ")
      for (n = 1; n <= names; n++) {
        table = table "| `" name[n] "` | " item[1] " | " substr(item[i], colon + 2) " |\n"
      }
    }
  }
  print cells[1] " | " group[1] " Its values are [below](#values-of-" field "). | " cells[3]
  next
}

/^## / && table != "" {
  sub(/^\n/, "", table)
  print table
  table = ""
}

{ print }

END { if (table != "") printf "%s", table }
