package account

import (
	"stonetown/api/profile"
	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/document"
	"stonetown/oauth/protocol"
)

func wireProfile(u identity.User) Profile {
	d := u.Document()
	return Profile{
		ID: d.ID, Email: d.Email, EmailVerified: d.EmailVerified, Name: d.Name, GivenName: d.GivenName, FamilyName: d.FamilyName,
		Picture: d.Picture, Locale: d.Locale, Attributes: d.Attributes, CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}
}

func (h *Handlers) wireSession(s session.Session, current string) Session {
	return Session{
		ID: s.ID, Current: s.ID == current, CreatedAt: document.Timestamp(s.CreatedAt), LastActiveAt: document.Timestamp(s.LastActiveAt),
		IP: s.Device.IP, IPGeo: profile.PlaceOf(h.GeoIP.Find(s.Device.IP)), UserAgent: s.Device.UserAgent, Device: Device{Kind: s.Device.Kind(), Fingerprint: s.Device.Fingerprint()},
	}
}

func (h *Handlers) authSession(s session.Session) AuthSession {
	w := h.wireSession(s, s.ID)
	return AuthSession{
		ID: w.ID, Current: w.Current, CreatedAt: w.CreatedAt, LastActiveAt: w.LastActiveAt, IP: w.IP, IPGeo: w.IPGeo, UserAgent: w.UserAgent, Device: w.Device,
		Aal: aal(s), Amr: s.Methods, AuthTime: document.Timestamp(s.AuthTime), ExpiresAt: document.Timestamp(s.ExpiresAt),
	}
}

func aal(s session.Session) string {
	if s.SecondFactor.IsZero() {
		return protocol.AAL1
	}
	return protocol.AAL2
}

func wireFactor(f factor.Factor) Factor {
	return Factor{ID: f.ID, Kind: string(f.Kind), Label: f.Label, CreatedAt: document.Timestamp(f.CreatedAt), LastUsedAt: document.TimeOrNull(f.LastUsedAt)}
}
