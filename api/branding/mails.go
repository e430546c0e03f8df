package branding

import (
	"context"
	"errors"

	"stonetown/api/web"
	"stonetown/identity/mails"
	"stonetown/internal/notify"
)

// Mails is the part of [mails.Composer] that the operations use.
type Mails interface {
	Customized(ctx context.Context, tenantID string) (map[string][]string, error)
	Template(ctx context.Context, tenantID, name, tag string) (mails.Template, error)
	Set(ctx context.Context, tenantID, name, tag string, t mails.Template) error
	Reset(ctx context.Context, tenantID, name, tag string) error
	Preview(ctx context.Context, t mails.Tenant, name, tag string, own mails.Template) (notify.Mail, error)
}

// Sender sends test mails; [authn.Service] implements it.
type Sender interface {
	SendTest(ctx context.Context, tenantID, userID, mail, language string) error
}

var (
	errNoMail = errors.New("there is no such mail, or it does not have this language")
	errNoUser = errors.New("test mails are sent to users, and the token is not that of one")
)

// ListMailTemplates lists the mails.
func (h *Handlers) ListMailTemplates(ctx context.Context, request ListMailTemplatesRequestObject) (ListMailTemplatesResponseObject, error) {
	info := web.InfoOf(ctx)
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listMailTemplates"}, request.Params.Limit, request.Params.Cursor, mails.Names(), func(name string) string { return name })
	if err != nil {
		return nil, err
	}
	customized, err := h.Mails.Customized(ctx, info.Tenant.ID)
	if err != nil {
		return nil, err
	}
	body := MailTemplateList{Data: []MailTemplateItem{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, name := range page {
		body.Data = append(body.Data, MailTemplateItem{Mail: name, Languages: append([]string{}, customized[name]...), Variables: mails.Variables(name)})
	}
	return ListMailTemplates200JSONResponse{Body: body}, nil
}

// exists refuses a mail that does not exist.
func exists(name, tag string) error {
	if !mails.Exists(name, tag) {
		return errNoMail
	}
	return nil
}

// GetMailTemplate reads the text of a mail.
func (h *Handlers) GetMailTemplate(ctx context.Context, request GetMailTemplateRequestObject) (GetMailTemplateResponseObject, error) {
	if err := exists(request.Mail, request.Language); err != nil {
		return nil, err
	}
	body, err := h.detail(ctx, request.Mail, request.Language)
	return GetMailTemplate200JSONResponse{Body: body}, err
}

// PutMailTemplate replaces the text of a mail.
func (h *Handlers) PutMailTemplate(ctx context.Context, request PutMailTemplateRequestObject) (PutMailTemplateResponseObject, error) {
	if err := exists(request.Mail, request.Language); err != nil {
		return nil, err
	}
	if err := h.Mails.Set(ctx, web.InfoOf(ctx).Tenant.ID, request.Mail, request.Language, templateOf(*request.Body)); err != nil {
		return nil, err
	}
	body, err := h.detail(ctx, request.Mail, request.Language)
	return PutMailTemplate200JSONResponse{Body: body}, err
}

// DeleteMailTemplate takes the text of a mail back to the built-in one.
func (h *Handlers) DeleteMailTemplate(ctx context.Context, request DeleteMailTemplateRequestObject) (DeleteMailTemplateResponseObject, error) {
	if err := exists(request.Mail, request.Language); err != nil {
		return nil, err
	}
	return DeleteMailTemplate204Response{}, h.Mails.Reset(ctx, web.InfoOf(ctx).Tenant.ID, request.Mail, request.Language)
}

// PreviewMailTemplate shows a mail with sample values.
func (h *Handlers) PreviewMailTemplate(ctx context.Context, request PreviewMailTemplateRequestObject) (PreviewMailTemplateResponseObject, error) {
	if err := exists(request.Mail, request.Language); err != nil {
		return nil, err
	}
	t := web.InfoOf(ctx).Tenant
	var own mails.Template
	if request.Body != nil {
		own = templateOf(*request.Body)
	}
	if own == (mails.Template{}) {
		stored, err := h.Mails.Template(ctx, t.ID, request.Mail, request.Language)
		if err != nil {
			return nil, err
		}
		own = stored
	}
	mail, err := h.Mails.Preview(ctx, mails.Tenant{ID: t.ID, Name: t.Name, BaseURL: t.BaseURL, Branding: t.Branding}, request.Mail, request.Language, own)
	body := MailPreview{Meta: Meta{RequestID: web.InfoOf(ctx).RequestID}}
	body.Data.Subject, body.Data.Text, body.Data.HTML = mail.Subject, mail.Text, mail.HTML
	return PreviewMailTemplate200JSONResponse{Body: body}, err
}

// SendTestMail sends a mail with sample values to the user of the token.
func (h *Handlers) SendTestMail(ctx context.Context, request SendTestMailRequestObject) (SendTestMailResponseObject, error) {
	if err := exists(request.Mail, request.Language); err != nil {
		return nil, err
	}
	info := web.InfoOf(ctx)
	if info.Principal.IsApplication() {
		return nil, errNoUser
	}
	return SendTestMail204Response{}, h.Sender.SendTest(ctx, info.Tenant.ID, info.Principal.Subject, request.Mail, request.Language)
}

func templateOf(form MailTemplateInput) mails.Template {
	return mails.Template{Subject: form.Subject, Heading: form.Heading, Body: form.Body, Button: form.Button}
}

func (h *Handlers) detail(ctx context.Context, name, tag string) (MailTemplateRead, error) {
	info := web.InfoOf(ctx)
	own, err := h.Mails.Template(ctx, info.Tenant.ID, name, tag)
	return MailTemplateRead{Data: own.Detail(name, tag), Meta: Meta{RequestID: info.RequestID}}, err
}
