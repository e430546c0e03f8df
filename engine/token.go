package engine

import (
	"encoding/base64"
	"strconv"
	"strings"

	"stonetown/tuplestore"
)

// A consistency token is base64url of v1|tenant|epoch|revision. It is opaque to clients but
// not secret: a forged token only makes the forger's own answers staler or slower.

func encodeToken(tenant, epoch string, rev tuplestore.Revision) string {
	var b []byte
	b = append(b, "v1|"...)
	b = append(b, tenant...)
	b = append(b, '|')
	b = append(b, epoch...)
	b = append(b, '|')
	b = strconv.AppendInt(b, int64(rev), 10)
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeToken reads a token of the tenant, or fails with [ErrTokenInvalid].
func decodeToken(tenant, token string) (epoch string, rev tuplestore.Revision, err error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", 0, ErrTokenInvalid
	}
	parts := strings.Split(string(b), "|")
	if len(parts) != 4 || parts[0] != "v1" || parts[1] != tenant {
		return "", 0, ErrTokenInvalid
	}
	n, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil || n < 0 {
		return "", 0, ErrTokenInvalid
	}
	return parts[2], tuplestore.Revision(n), nil
}
