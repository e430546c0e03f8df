package settings

import (
	"context"
	"encoding/pem"
	"fmt"

	"stonetown/api/web"
	"stonetown/internal/document"
	"stonetown/internal/samlkeys"
)

// SAMLKeys is the part of [samlkeys.Store] that the operations use.
type SAMLKeys interface {
	List(ctx context.Context, tenantID string) ([]samlkeys.Key, error)
	Rotate(ctx context.Context, tenantID string, use samlkeys.Use, emergency bool) ([]samlkeys.Key, error)
}

// ListSAMLCertificates lists the certificates of the keys for SAML.
func (h *Handlers) ListSAMLCertificates(ctx context.Context, request ListSAMLCertificatesRequestObject) (ListSAMLCertificatesResponseObject, error) {
	info := web.InfoOf(ctx)
	found, err := h.SAMLKeys.List(ctx, info.Tenant.ID)
	if err != nil {
		return nil, err
	}
	list, err := h.certificateList(info, found, request.Params.Limit, request.Params.Cursor)
	return ListSAMLCertificates200JSONResponse{Body: list}, err
}

// RotateSAMLCertificate replaces the certificate of a use.
func (h *Handlers) RotateSAMLCertificate(ctx context.Context, request RotateSAMLCertificateRequestObject) (RotateSAMLCertificateResponseObject, error) {
	info := web.InfoOf(ctx)
	use := samlkeys.Use(request.Body.Use)
	if !use.Valid() {
		return nil, web.ValidationFailed(web.FieldError{Field: "use", Code: "unknown_value", Message: fmt.Sprintf("must be one of %q", samlkeys.Uses)})
	}
	rotated, err := h.SAMLKeys.Rotate(ctx, info.Tenant.ID, use, request.Body.Emergency)
	if err != nil {
		return nil, err
	}
	list, err := h.certificateList(info, rotated, nil, "")
	return RotateSAMLCertificate200JSONResponse{Body: list}, err
}

// certificateList is a page of the certificates.
func (h *Handlers) certificateList(info *web.RequestInfo, all []samlkeys.Key, size *int, cursor string) (SAMLCertificateList, error) {
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listSAMLCertificates"}, size, cursor, all, func(k samlkeys.Key) string { return k.ID })
	list := SAMLCertificateList{Data: []SAMLCertificate{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, k := range page {
		created := document.Timestamp(k.CreatedAt)
		list.Data = append(list.Data, SAMLCertificate{
			Fingerprint: k.ID, Use: string(k.Use), State: string(k.State),
			Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Certificate.Raw})),
			NotBefore:   document.Timestamp(k.Certificate.NotBefore), NotAfter: document.Timestamp(k.Certificate.NotAfter), CreatedAt: created, PublishedAt: created,
			ActivatedAt: document.TimeOrNull(k.ActivatedAt), RetiredAt: document.TimeOrNull(k.RetiredAt),
		})
	}
	return list, err
}
