package docs

import (
	"os"
	"path/filepath"
)

// exported are the addresses of the site in files, relative to the folder. Without a server there
// is no search.
var exported = Layout{
	Page: func(name string) string {
		if name == "" {
			name = "index"
		}
		return name + ".html"
	},
	Scripts: func(string) string { return playgroundPage + "/" },
	Style:   "docs.css",
}

// Export writes the site into a folder, which is created unless it exists, and returns the number
// of pages. Files of the same names are replaced.
func Export(folder string) (int, error) {
	site, err := New(exported)
	if err != nil {
		return 0, err
	}
	style, err := stylesheet()
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	if err := os.WriteFile(filepath.Join(folder, exported.Style), style, 0o644); err != nil {
		return 0, err
	}
	s, err := loadScripts()
	if err != nil {
		return 0, err
	}
	for name, text := range s.export() {
		at := filepath.Join(folder, exported.Scripts(s.folder), name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return 0, err
		}
		if err := os.WriteFile(at, text, 0o644); err != nil {
			return 0, err
		}
	}
	for _, p := range site.Pages {
		if err := os.WriteFile(filepath.Join(folder, exported.Page(p.Name)), p.HTML, 0o644); err != nil {
			return 0, err
		}
	}
	return len(site.Pages), nil
}
