get() { sed -n 's/.*"'"$1"'": "\([^"]*\)".*/\1/p' {{.File}}; }
BASE=$(get base_url)
TOKEN=$(curl -sS "$BASE/oauth2/token" -d grant_type=client_credentials \
  -d client_id="$(get client_id)" -d client_secret="$(get client_secret)" \
  | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
call() { curl -sS -X "$1" "$BASE/api/v1/$2" -H "Authorization: Bearer $TOKEN" \
  -H 'Content-Type: application/json' ${3:+-d "$3"}; echo; }
call POST resource-types '{"name":"folder","relations":[
  {"name":"owner","rewrites":[]},
  {"name":"viewer","rewrites":[{"kind":"this"},{"kind":"computed","relation":"owner"}]}]}'
call POST resource-types '{"name":"document","relations":[
  {"name":"parent","rewrites":[],"subjects":["folder"]},
  {"name":"banned","rewrites":[]},
  {"name":"viewer","rewrites":[{"kind":"exclusion",
    "base":{"kind":"union","children":[{"kind":"this"},
      {"kind":"tuple_to_userset","tupleset":"parent","computed":"viewer"}]},
    "subtract":{"kind":"computed","relation":"banned"}}]}]}'
call POST resources/relations/bulk '{"operations":[
  {"op":"create","resource":{"type":"folder","external_id":"2026"},"relation":"owner","subject":{"type":"user","id":"ann"}},
  {"op":"create","resource":{"type":"folder","external_id":"2026"},"relation":"viewer","subject":{"type":"group","id":"eng"}},
  {"op":"create","resource":{"type":"group","external_id":"eng"},"relation":"member","subject":{"type":"user","id":"bob"}},
  {"op":"create","resource":{"type":"document","external_id":"plans/q1 draft"},"relation":"parent","subject":{"type":"folder","id":"2026"}}]}'
call POST 'resources/document/plans%2Fq1%20draft/relations' '{"subject":{"type":"user","id":"eve"},"relation":"viewer"}'
call POST resources/check '{"subject":{"type":"user","id":"bob"},"action":"view",
  "resource":{"type":"document","external_id":"plans/q1 draft"},"debug":true}'
call POST resources/check-batch '{"subject":{"type":"user","id":"eve"},"checks":[
  {"action":"view","resource":{"type":"document","external_id":"plans/q1 draft"}},
  {"action":"view","resource":{"type":"folder","external_id":"2026"}}]}'
