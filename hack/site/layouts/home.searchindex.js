{{- /* The search reads sections: a heading with the text below it. */ -}}
{{- $sections := slice -}}
{{- range site.Pages -}}
  {{- $page := . -}}
  {{- $title := partial "title.html" . -}}
  {{- $content := replaceRE `(?s)<!--.*?-->` "" .Content -}}
  {{- range split $content "<h" -}}
    {{- with findRESubmatch `(?s)^[1-6] id="([^"]+)">(.*?) <a class="anchor".*?</h[1-6]>(.*)` . 1 -}}
      {{- $part := index . 0 -}}
      {{- $sections = $sections | append (dict "page" $title "heading" (index $part 2 | plainify | htmlUnescape)
        "url" (print $page.RelPermalink "#" (index $part 1)) "text" (index $part 3 | plainify | htmlUnescape)) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
const sections = {{ $sections | jsonify }};
