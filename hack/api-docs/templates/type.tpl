{{- define "type" -}}
{{- $type := . }}
## {{ $type.Name }}

{{ if $type.IsAlias }}A {{ markdownRenderTypeLink $type.UnderlyingType }}. {{ end }}{{ $type.Doc }}
{{ if $type.References }}
Used in {{ range $i, $r := $type.SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $r }}{{ end }}.
{{ end }}
{{- if $type.Members }}
| field | description | default |
| --- | --- | --- |
{{ range $type.Members }}{{ if ne .Name "metadata" -}}
| `{{ .Name }}` _{{ markdownRenderType .Type }}_ | {{ markdownRenderFieldDoc .Doc }}{{ if .Markers.required }} Required.{{ end }} | {{ markdownRenderDefault .Default }} |
{{ end }}{{ end }}
{{- end }}
{{- if $type.EnumValues }}
| value | meaning |
| --- | --- |
{{ range $type.EnumValues -}}
| `{{ .Name }}` | {{ markdownRenderFieldDoc .Doc }} |
{{ end }}
{{- end }}
{{- end -}}
