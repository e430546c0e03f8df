// Package mails composes the mails to users: their texts, in the language of the user, and their look,
// by the branding of the tenant.
//
// Each mail has a built-in text. A tenant can replace it in a language by a [Template], which is plain
// text with variables:
//
//	Subject  Welcome to {{tenant}}
//	Heading  Hello {{name}}
//	Body     Please confirm that {{email}} is your address.
//
//	         {{link}}
//
//	         The link works for {{count}} hours.
//	Button   Confirm
//
// A variable is replaced by its value, once: a value has no variables. There are no conditions, no loops
// and no HTML, so that a template can do nothing but say something. The paragraph {{link}} is the button,
// and every mail has one.
package mails
