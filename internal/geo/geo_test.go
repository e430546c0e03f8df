package geo

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

func TestFind(t *testing.T) {
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Test", RecordSize: 24, IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	for network, record := range map[string]mmdbtype.Map{
		"192.0.2.0/24":    {"city": mmdbtype.Map{"names": mmdbtype.Map{"en": mmdbtype.String("Berlin"), "de": mmdbtype.String("Berlin (D)")}}, "country": mmdbtype.Map{"iso_code": mmdbtype.String("DE")}},
		"2001:db8::/32":   {"country": mmdbtype.Map{"iso_code": mmdbtype.String("FR")}},
		"198.51.100.0/24": {"city": mmdbtype.String("of the wrong type")},
	} {
		_, parsed, err := net.ParseCIDR(network)
		if err == nil {
			err = tree.Insert(parsed, record)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "test.mmdb")
	f, err := os.Create(path)
	if err == nil {
		_, err = tree.WriteTo(f)
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for ip, want := range map[string]Place{
		"192.0.2.7": {"Berlin", "DE"}, "2001:db8::1": {"", "FR"}, "203.0.113.1": {}, "198.51.100.1": {}, "": {}, "invalid IP": {},
	} {
		if got := d.Find(ip); got != want {
			t.Errorf("%s: %+v, want %+v", ip, got, want)
		}
	}
	none := None{}
	if none.Find("192.0.2.7") != (Place{}) || none.Close() != nil {
		t.Error("without a database a location is known")
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing file is opened")
	}
}
