package management

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	"stonetown/controlplane"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/notify"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

const (
	// invitationFor is how long an invitation can be accepted.
	invitationFor = 7 * 24 * time.Hour
	// maxInvitations is how many pending invitations an organisation can have.
	maxInvitations = 100
	// invitationJob is the kind of the jobs that send invitations.
	invitationJob = "mail.invitation"
	// invitationPage is the page that a mailed link leads to.
	invitationPage = "/invitation"
	// tokenPrefix begins the token of an invitation.
	tokenPrefix = "it_"
)

// invitationMail is the payload of a job. The token is made when the mail is sent, and until then no
// secret is stored.
type invitationMail struct {
	OrgID        string `json:"org_id"`
	InvitationID string `json:"invitation_id"`
}

// Invite invites the owner of an address to an organisation, by mail. It fails with
// [ErrOrganizationNotFound], [*ForbiddenError], [*FieldError], or [*ConflictError] for a member and
// for an address with a pending invitation.
func (s *Service) Invite(ctx context.Context, by Caller, orgID, email string, role Role) (Invitation, error) {
	if err := s.may(ctx, by, orgID, needed(role)...); err != nil {
		return Invitation{}, err
	}
	if err := s.known(ctx, role, schema.UserType); err != nil {
		return Invitation{}, err
	}
	norm, err := s.users.NormalEmail(email)
	if err != nil {
		return Invitation{}, &FieldError{Field: "email", Code: "invalid", Message: "must be an e-mail address"}
	}
	if err := s.notMember(ctx, orgID, email); err != nil {
		return Invitation{}, err
	}
	now := s.now()
	i := Invitation{
		ID: id.New(id.Invitation), OrgID: orgID, Email: email, Role: role, State: InvitationPending,
		InvitedBy: by.Subject.ID, CreatedAt: now, ExpiresAt: now.Add(invitationFor),
	}
	if by.CommitID != "" {
		i.ID = id.Of(id.Invitation, by.CommitID)
		if again, err := s.selectInvitation(ctx, s.db, orgID, i.ID); !errors.Is(err, ErrInvitationNotFound) {
			return again, err // committed by an earlier attempt
		}
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		expired, err := s.expireOf(ctx, tx, orgID, norm)
		if err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, countInvitations, orgID).Scan(&n); err != nil {
			return err
		}
		if n >= maxInvitations {
			return &ConflictError{fmt.Sprintf("the organisation has %d pending invitations, which is the limit", maxInvitations)}
		}
		if err := insertInvitation(ctx, tx, i, norm); err != nil {
			return err
		}
		var b sqldb.Batch
		s.jobs.Enqueue(&b, controlplane.SystemTenant, invitationJob, invitationMail{orgID, i.ID})
		eventlog.Append(&b, orgID, append(expired, eventlog.Of(ctx, InvitationCreatedEvent, i.Document()))...)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Invitation{}, fmt.Errorf("invite: %w", err)
	}
	s.jobs.Wake()
	return i, nil
}

// notMember fails with [*ConflictError] if the user with an address is a member.
func (s *Service) notMember(ctx context.Context, orgID, email string) error {
	person, ok, err := s.users.ByEmail(ctx, email)
	if err != nil || !ok {
		return err
	}
	role, err := s.roleOf(ctx, orgID, tuplestore.Subject{Type: schema.UserType, ID: person.ID})
	if err != nil {
		return err
	}
	if role != "" {
		return &ConflictError{"the user with this address is a member"}
	}
	return nil
}

// Invitations lists the invitations of an organisation, newest first, in one state or, if it is
// empty, in all states, after a position (nil: from the start), at most limit. It fails with
// [ErrOrganizationNotFound].
func (s *Service) Invitations(ctx context.Context, by Caller, orgID string, state InvitationState, after *Position, limit int) ([]Invitation, error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return nil, err
	}
	return s.selectInvitations(ctx, orgID, state, after, limit)
}

// Invitation returns an invitation. It fails with [ErrOrganizationNotFound] or
// [ErrInvitationNotFound].
func (s *Service) Invitation(ctx context.Context, by Caller, orgID, invitationID string) (Invitation, error) {
	if err := s.may(ctx, by, orgID); err != nil {
		return Invitation{}, err
	}
	return s.selectInvitation(ctx, s.db, orgID, invitationID)
}

// changeInvitation changes a pending invitation in one transaction, with an event.
func (s *Service) changeInvitation(ctx context.Context, by Caller, orgID, invitationID string, event eventlog.Type, change func(*Invitation, *sqldb.Batch)) (i Invitation, err error) {
	if i, err = s.Invitation(ctx, by, orgID, invitationID); err != nil {
		return Invitation{}, err
	}
	if err := s.may(ctx, by, orgID, needed(i.Role)...); err != nil {
		return Invitation{}, err
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if i, err = s.selectInvitation(ctx, tx, orgID, invitationID); err != nil {
			return err
		}
		if i.State != InvitationPending {
			return &ConflictError{"the invitation is " + string(i.State)}
		}
		var b sqldb.Batch
		change(&i, &b)
		if err := updateInvitation(ctx, tx, i); err != nil {
			return err
		}
		eventlog.Append(&b, orgID, eventlog.Of(ctx, event, i.Document()))
		return tx.Send(ctx, &b)
	})
	return i, err
}

// RevokeInvitation ends a pending invitation. It fails with [ErrOrganizationNotFound],
// [ErrInvitationNotFound], [*ForbiddenError] or [*ConflictError].
func (s *Service) RevokeInvitation(ctx context.Context, by Caller, orgID, invitationID string) error {
	_, err := s.changeInvitation(ctx, by, orgID, invitationID, InvitationRevokedEvent, func(i *Invitation, _ *sqldb.Batch) {
		i.State = InvitationRevoked
	})
	if err != nil {
		return fmt.Errorf("revoke invitation: %w", err)
	}
	return nil
}

// ResendInvitation sends the mail of a pending invitation again, with a new link in place of the one
// before, and for as long as a new invitation. It fails as [Service.RevokeInvitation] does.
func (s *Service) ResendInvitation(ctx context.Context, by Caller, orgID, invitationID string) (Invitation, error) {
	i, err := s.changeInvitation(ctx, by, orgID, invitationID, InvitationResentEvent, func(i *Invitation, b *sqldb.Batch) {
		i.ExpiresAt = s.now().Add(invitationFor)
		s.jobs.Enqueue(b, controlplane.SystemTenant, invitationJob, invitationMail{orgID, invitationID})
	})
	if err != nil {
		return Invitation{}, fmt.Errorf("resend invitation: %w", err)
	}
	s.jobs.Wake()
	return i, nil
}

// mailInvitation sends an invitation with a new token.
func (s *Service) mailInvitation(ctx context.Context, job jobs.Job) error {
	var m invitationMail
	if err := job.Read(&m); err != nil {
		return err
	}
	i, err := s.selectInvitation(ctx, s.db, m.OrgID, m.InvitationID)
	if err != nil || i.State != InvitationPending {
		return errors.Join(err, jobs.ErrDrop)
	}
	o, err := s.directory.OrganizationByID(ctx, i.OrgID)
	if err != nil {
		return err
	}
	inviter, err := s.users.People(ctx, []string{i.InvitedBy})
	if err != nil {
		return err
	}
	token := newToken()
	if n, err := s.db.Exec(ctx, setToken, i.OrgID, i.ID, hashToken(token)); err != nil {
		return err
	} else if n == 0 {
		return jobs.ErrDrop
	}
	from := inviter[i.InvitedBy].Email
	if from == "" { // a service account
		from = o.Name
	}
	err = s.mail.SendInvitation(ctx, i.Email, o.Name, from, invitationPage+"?token="+url.QueryEscape(token), i.ExpiresAt.Sub(s.now()))
	if errors.Is(err, notify.ErrRefused) {
		err = errors.Join(err, jobs.ErrDrop)
	}
	return err
}

// newToken returns a token of 256 random bits.
func newToken() string {
	var raw [32]byte
	rand.Read(raw[:])
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// AcceptInvitation makes the caller a member. The address of the invitation must be the verified
// address of the caller. It fails with [ErrInvitationNotFound], [*ForbiddenError], or
// [*ConflictError] for a member.
func (s *Service) AcceptInvitation(ctx context.Context, by Caller, token string) (Member, error) {
	if by.Subject.Type != schema.UserType {
		return Member{}, &ForbiddenError{"a service account cannot accept an invitation"}
	}
	if by.CommitID != "" {
		if m, err := s.acceptedBy(ctx, by); err != nil || m.ID != "" {
			return m, err // committed by an earlier attempt
		}
	}
	i, norm, err := s.invitationByToken(ctx, hashToken(token))
	if err != nil {
		return Member{}, err
	}
	people, err := s.users.People(ctx, []string{by.Subject.ID})
	if err != nil {
		return Member{}, err
	}
	person := people[by.Subject.ID]
	if own, err := s.users.NormalEmail(person.Email); err != nil || own != norm || !person.EmailVerified {
		return Member{}, &ForbiddenError{"the invitation was sent to another address than the verified one of the caller"}
	}
	m := Member{ID: id.New(id.Member), OrgID: i.OrgID, UserID: person.ID, Role: i.Role, JoinedAt: s.now(), InvitedBy: i.InvitedBy}
	if by.CommitID != "" {
		m.ID = id.Of(id.Member, by.CommitID)
	}
	m = m.of(person)
	err = s.replace(ctx, by, i.OrgID, by.Subject, "", i.Role, func(ctx context.Context, tx *sqldb.Tx) ([]eventlog.Event, error) {
		if i, err = s.selectInvitation(ctx, tx, i.OrgID, i.ID); err != nil {
			return nil, err
		}
		if i.State != InvitationPending {
			return nil, ErrInvitationNotFound
		}
		if i.Role != m.Role {
			return nil, errRoleChanged
		}
		if err := s.hasRoom(ctx, tx, i.OrgID); err != nil {
			return nil, err
		}
		i.State, i.AcceptedAt = InvitationAccepted, m.JoinedAt
		if err := updateInvitation(ctx, tx, i); err != nil {
			return nil, err
		}
		return []eventlog.Event{
			eventlog.Of(ctx, InvitationAcceptedEvent, i.Document()), eventlog.Of(ctx, MemberJoinedEvent, m.Document()),
		}, insertMember(ctx, tx, m)
	})
	if errors.Is(err, errRoleChanged) {
		err = &ConflictError{"the caller is a member"}
	}
	if err != nil {
		return Member{}, fmt.Errorf("accept invitation: %w", err)
	}
	return m, nil
}

// acceptedBy returns the member that an earlier attempt of a request has made; the zero member if
// there is none.
func (s *Service) acceptedBy(ctx context.Context, by Caller) (Member, error) {
	m, err := scanMember(s.db.QueryRow(ctx, selectMemberOf+`WHERE user_id = $1 AND id = $2`, by.Subject.ID, id.Of(id.Member, by.CommitID)))
	if errors.Is(err, ErrMemberNotFound) {
		return Member{}, nil
	}
	if err != nil {
		return Member{}, err
	}
	return s.member(ctx, m.OrgID, m.ID)
}

// invitationByToken returns a pending invitation, and its address for comparisons.
func (s *Service) invitationByToken(ctx context.Context, hash string) (i Invitation, norm string, err error) {
	err = s.db.QueryRow(ctx, selectByToken, hash, s.now().UnixMicro()).Scan(&i.OrgID, &i.ID, &norm)
	if errors.Is(err, sqldb.ErrNoRows) {
		return i, "", ErrInvitationNotFound
	}
	if err == nil {
		i, err = s.selectInvitation(ctx, s.db, i.OrgID, i.ID)
	}
	return i, norm, err
}

// revokeOf revokes, in a transaction, the pending invitations that a member has sent: they would
// give what the member may no longer give.
func (s *Service) revokeOf(ctx context.Context, tx *sqldb.Tx, orgID, userID string) (events []eventlog.Event, err error) {
	list, err := scanInvitations(s.now())(tx.Query(ctx, selectInvitationsOf+`WHERE org_id = $1 AND invited_by = $2 AND state = 'pending' ORDER BY id`, orgID, userID))
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		i.State = InvitationRevoked
		if err := updateInvitation(ctx, tx, i); err != nil {
			return nil, err
		}
		events = append(events, eventlog.Of(ctx, InvitationRevokedEvent, i.Document()))
	}
	return events, nil
}

// expire ends invitations whose time is over.
func (s *Service) expire(ctx context.Context) error {
	rows, err := scanInvitations(s.now())(s.db.Query(ctx, selectInvitationsOf+`WHERE state = 'pending' AND expires_at <= $1 ORDER BY expires_at, id LIMIT $2`, s.now().UnixMicro(), atOnce))
	for _, i := range rows {
		failed := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
			n, err := tx.Exec(ctx, expireInvitation, i.OrgID, i.ID, s.now().UnixMicro())
			if err != nil || n == 0 { // another process has done it, or it was sent again
				return err
			}
			var b sqldb.Batch
			eventlog.Append(&b, i.OrgID, eventlog.New(InvitationExpiredEvent, eventlog.Origin{}, i.Document()))
			return tx.Send(ctx, &b)
		})
		err = errors.Join(err, failed)
	}
	return err
}

// expireOf ends, in a transaction, an invitation of an address whose time is over, because another
// one takes its place.
func (s *Service) expireOf(ctx context.Context, tx *sqldb.Tx, orgID, norm string) (events []eventlog.Event, err error) {
	now := s.now()
	list, err := scanInvitations(now)(tx.Query(ctx, selectInvitationsOf+`WHERE org_id = $1 AND email_norm = $2 AND state = 'pending' AND expires_at <= $3`, orgID, norm, now.UnixMicro()))
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		if _, err := tx.Exec(ctx, expireInvitation, orgID, i.ID, now.UnixMicro()); err != nil {
			return nil, err
		}
		events = append(events, eventlog.New(InvitationExpiredEvent, eventlog.Origin{}, i.Document()))
	}
	return events, nil
}
