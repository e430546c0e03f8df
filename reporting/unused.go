package reporting

import "context"

// unused lists the applications that got no token in some days, and existed before.
func (p *production) unused(ctx context.Context) error {
	since := p.now().AddDate(0, 0, -p.run.Parameters.Days)
	all, unused, never := 0, 0, 0
	for after := (Application{}); ; {
		page, err := p.applications.Page(ctx, p.run.TenantID, after, pageSize)
		if err != nil {
			return err
		}
		for _, a := range page {
			after = a
			all++
			if a.LastUsedAt.IsZero() {
				never++
			}
			if !a.CreatedAt.Before(since) || !a.LastUsedAt.Before(since) {
				continue
			}
			unused++
			if err := p.add(ctx, a.ID, a.ClientID, a.Name, a.Type, a.State, orNull(a.CreatedAt), orNull(a.LastUsedAt)); err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			break
		}
	}
	p.figure("applications", "", all)
	p.figure("unused_applications", "", unused)
	p.figure("never_used_applications", "", never)
	return nil
}
