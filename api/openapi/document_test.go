package openapi_test

import (
	"testing"

	"stonetown/api/openapi"
	"stonetown/api/openapi/documenttest"
)

func TestDocument(t *testing.T) { documenttest.Test(t, openapi.DataPlane, 250) }
