package openfga

import (
	"errors"
	"slices"
	"strings"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/source"
)

// modules reads the modules that a fga.mod file lists and merges them to one model.
func (r *reader) modules(name, text string) (*openfgav1.AuthorizationModel, *declarations, error) {
	var list *transformer.ModFile
	err := guarded(func() (err error) {
		list, err = transformer.TransformModFile(text)
		return err
	})
	if err != nil {
		return nil, nil, misreadList(name, err)
	}
	if n := len(list.Contents.Value); n == 0 || n > maxFiles {
		return nil, nil, source.Errorf(importer.Place{File: name}, "it lists %d modules, 1 to %d can be read", n, maxFiles)
	}
	where := newDeclarations(name)
	sources := map[string]*script{}
	var files []transformer.ModuleFile
	left := maxModules
	for _, listed := range list.Contents.Value {
		at := importer.Place{File: name, Line: listed.Line + 1}
		file, text, err := r.files.Referred(at, listed.Value, left)
		if err != nil {
			return nil, nil, err
		}
		if sources[file] != nil {
			return nil, nil, source.Errorf(at, "%s is listed twice", source.Quoted(listed.Value))
		}
		left -= len(text)
		s, err := prepare(file, text, nil, nil)
		if err != nil {
			return nil, nil, err
		}
		if !s.isModule() {
			return nil, nil, source.Errorf(importer.Place{File: file, Line: 1}, "not a module: it does not begin with the word module")
		}
		if _, err := s.parse(); err != nil { // the errors of the merged model do not name the file
			return nil, nil, err
		}
		sources[file] = s
		where.find(s)
		files = append(files, transformer.ModuleFile{Name: file, Contents: s.text()})
	}
	var model *openfgav1.AuthorizationModel
	err = guarded(func() (err error) {
		model, err = transformer.TransformModuleFilesToModel(files, list.Schema.Value)
		return err
	})
	if err != nil {
		return nil, nil, misfitting(name, sources, err)
	}
	return model, where, nil
}

// misreadList is an error of a fga.mod file, at its place.
func misreadList(name string, err error) error {
	at := importer.Place{File: name}
	var several *transformer.ModFileValidationMultipleError
	if errors.As(err, &several) && len(several.Errors) > 0 {
		err = several.Errors[0]
	}
	var one *transformer.ModFileValidationError
	if errors.As(err, &one) {
		if !strings.HasPrefix(one.Msg, "missing") {
			at.Line = one.Line + 1
		}
		return source.Errorf(at, "%s", source.Clip(one.Msg))
	}
	return misread(at, err)
}

// misfitting is the error of modules that cannot be merged. Their extensions are merged in no
// certain order, so of several errors the first one by its place is returned.
func misfitting(name string, sources map[string]*script, err error) error {
	var several *transformer.ModuleValidationMultipleError
	if !errors.As(err, &several) || len(several.Errors) == 0 {
		return source.Errorf(importer.Place{File: name}, "%s", source.Clip(err.Error()))
	}
	var all []string
	for _, err := range several.Errors {
		at := importer.Place{File: name}
		message := err.Error()
		var one *transformer.ModuleTransformationSingleError
		if errors.As(err, &one) {
			message = one.Msg
			if s := sources[one.File]; s != nil {
				at = s.at(one.Line.Start)
			}
		}
		all = append(all, source.Errorf(at, "%s", source.Clip(message)).Error())
	}
	return errors.New(slices.Min(all))
}
