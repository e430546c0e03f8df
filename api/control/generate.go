package control

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config oapi-codegen.yaml openapi.yaml
//go:generate go run stonetown/api/openapi/internal/derive
