package main

import "testing"

func TestCheck(t *testing.T) {
	for sql, good := range map[string]bool{
		"SELECT rev FROM tenant_heads WHERE tenant_id = $1":                          true,
		"INSERT INTO a (b) VALUES ($1) ON CONFLICT (b) DO UPDATE SET b = excluded.b": true,
		"SELEC 1":                         false,
		"SELECT '1'::INT":                 false,
		"DELETE FROM a USING b":           false,
		"SELECT pg_advisory_lock(1)":      false,
		"SELECT 1 FOR UPDATE SKIP LOCKED": false,
		"DO $$ BEGIN END $$":              false,
	} {
		if err := check(sql); (err == nil) != good {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
