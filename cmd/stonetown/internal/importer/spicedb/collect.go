package spicedb

import (
	"slices"
	"strings"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
	"stonetown/schema"
)

// sources are the statements of a schema with its imported files.
type sources struct {
	definitions []*definition
	partials    map[string]*definition
	caveats     []*caveat
	flags       map[string]bool
}

// collect parses a file and its imports, each file once.
func (r *reader) collect(name, code string, lines []int) (*sources, error) {
	s := &sources{partials: map[string]*definition{}, flags: map[string]bool{}}
	if err := r.collectInto(s, map[string]bool{name: true}, name, code, lines); err != nil {
		return nil, err
	}
	if err := s.distinct(); err != nil {
		return nil, err
	}
	return s, s.expand()
}

func (r *reader) collectInto(s *sources, seen map[string]bool, name, code string, lines []int) error {
	if len(code) > maxSchema {
		return source.Errorf(importer.Place{File: name}, "a schema of more than %d bytes", maxSchema)
	}
	f, err := parse(name, code, lines)
	if err != nil {
		return err
	}
	for _, statement := range f.Statements {
		switch at := place(statement.Pos); {
		case statement.Use != "":
			if !slices.Contains([]string{"expiration", "typechecking", "self", "partial", "import"}, statement.Use) {
				r.data.Find(at, importer.Unsupported, "use "+statement.Use+" is not known and has no effect")
			}
			s.flags[statement.Use] = true
		case statement.Import != "":
			full, text, err := r.files.Referred(at, strings.Trim(statement.Import, `"'`), maxSchema)
			if err != nil {
				return err
			}
			if seen[full] {
				continue
			}
			if seen[full] = true; len(seen) > maxFiles {
				return source.Errorf(at, "a schema of more than %d files", maxFiles)
			}
			if err := r.collectInto(s, seen, full, text, nil); err != nil {
				return err
			}
		case statement.Definition != nil:
			s.definitions = append(s.definitions, statement.Definition)
		case statement.Caveat != nil:
			s.caveats = append(s.caveats, statement.Caveat)
		case statement.Partial != nil:
			p := statement.Partial
			if s.partials[p.Name] != nil {
				return source.Errorf(at, "partial %s is defined twice", p.Name)
			}
			s.partials[p.Name] = p
		}
	}
	return nil
}

// distinct refuses duplicate definitions. Definitions, caveats and partials share one space of
// names.
func (s *sources) distinct() error {
	if n := len(s.definitions); n > schema.MaxTypes {
		return source.Errorf(place(s.definitions[n-1].Pos), "%d definitions, at most %d are allowed", n, schema.MaxTypes)
	}
	if n := len(s.caveats); n > schema.MaxTypes {
		return source.Errorf(place(s.caveats[n-1].Pos), "%d caveats, at most %d are allowed", n, schema.MaxTypes)
	}
	names := map[string]bool{}
	for name := range s.partials {
		names[name] = true
	}
	for _, d := range s.definitions {
		if names[d.Name] {
			return source.Errorf(place(d.Pos), "%s is defined twice", d.Name)
		}
		names[d.Name] = true
	}
	for _, c := range s.caveats {
		if names[c.Name] {
			return source.Errorf(place(c.Pos), "%s is defined twice", c.Name)
		}
		names[c.Name] = true
	}
	return nil
}

// expand replaces the names of partials by their members.
func (s *sources) expand() error {
	e := expansion{s, map[string][]*member{}, map[string]bool{}}
	total := 0
	for _, d := range s.definitions {
		members, err := e.members(d)
		if err != nil {
			return err
		}
		d.Members = members
		if total += len(members); total > schema.MaxDocument {
			return source.Errorf(place(d.Pos), "more than %d relations and permissions in all definitions", schema.MaxDocument)
		}
	}
	return nil
}

type expansion struct {
	*sources
	done map[string][]*member
	// open are the partials that are being expanded.
	open map[string]bool
}

func (e *expansion) members(d *definition) ([]*member, error) {
	var all []*member
	names := map[string]bool{}
	for _, m := range d.Members {
		members := []*member{m}
		if m.Partial != "" {
			var err error
			if members, err = e.partial(m); err != nil {
				return nil, err
			}
		}
		for _, m := range members {
			if names[m.name()] {
				return nil, source.Errorf(place(m.Pos), "%s#%s is defined twice", d.Name, m.name())
			}
			names[m.name()] = true
		}
		if all = append(all, members...); len(all) > schema.MaxRelations {
			return nil, source.Errorf(place(d.Pos), "%s has more than %d relations and permissions", d.Name, schema.MaxRelations)
		}
	}
	return all, nil
}

func (e *expansion) partial(reference *member) ([]*member, error) {
	name := reference.Partial
	if members, ok := e.done[name]; ok {
		return members, nil
	}
	p := e.partials[name]
	switch {
	case p == nil:
		return nil, source.Errorf(place(reference.Pos), "partial %s is not defined", name)
	case e.open[name]:
		return nil, source.Errorf(place(reference.Pos), "partial %s contains itself", name)
	case len(e.open) == maxNesting:
		return nil, source.Errorf(place(reference.Pos), "partials are nested more than %d deep", maxNesting)
	}
	e.open[name] = true
	members, err := e.members(p)
	if err != nil {
		return nil, err
	}
	delete(e.open, name)
	e.done[name] = members
	return members, nil
}

func (m *member) name() string {
	if m.Relation != nil {
		return m.Relation.Name
	}
	return m.Permission.Name
}
