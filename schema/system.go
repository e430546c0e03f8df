package schema

// The system types and their relations.
const (
	UserType                = "user"
	ApplicationType         = "application"
	GroupType               = "group"
	ScopeType               = "scope"
	AudienceType            = "audience"
	WebhookSubscriptionType = "webhook_subscription"
	WorkloadIdentityType    = "workload_identity"

	// GroupMember is the relation that a subject {type: group} represents.
	GroupMember = "member"
	// ScopeHolder: is entitled to the scope.
	ScopeHolder = "holder"
	// ActAs, of a user or an application: may act in its place.
	ActAs = "act_as"
	// AudienceCaller: may call the API that the audience names.
	AudienceCaller = "caller"
	// AudienceExchanger: an application that may exchange tokens for ones of the audience.
	AudienceExchanger = "exchanger"
	// Exchange, of an application to itself: may exchange tokens.
	Exchange = "exchange"
	// ActAsUser and ActAsApplication, of an application to itself: may exchange tokens for
	// ones in which an actor acts as a user, or as an application.
	ActAsUser        = "act_as_user"
	ActAsApplication = "act_as_application"
	// Impersonator, of an application: workloads of a trusted issuer that get its tokens.
	Impersonator = "impersonator"
	// WebhookOwner: may read and change the webhook subscription.
	WebhookOwner = "owner"
	// WebhookViewer: may read the webhook subscription. Owners are viewers.
	WebhookViewer = "viewer"
)

// system types exist in every tenant and in no document. Groups have members, which can be
// groups. The holders of an OAuth scope are entitled to it. Relations of users and
// applications determine which subjects may act in their place, and relations of
// applications and audiences which tokens may be exchanged (RFC 8693). Workload identities are
// subjects only: the workloads of a trusted issuer (RFC 7523). Relations of webhook
// subscriptions determine which subjects may manage and view them.
var system = []Type{
	{Name: UserType, Relations: []Relation{{Name: ActAs, Subjects: actors}}},
	{Name: ApplicationType, Relations: []Relation{
		{Name: ActAs, Subjects: actors},
		{Name: Exchange, Subjects: applications},
		{Name: ActAsUser, Subjects: applications},
		{Name: ActAsApplication, Subjects: applications},
		{Name: Impersonator, Subjects: []SubjectType{{Type: WorkloadIdentityType}}},
	}},
	{Name: GroupType, Relations: []Relation{{
		Name:     GroupMember,
		Subjects: []SubjectType{{Type: UserType}, {Type: ApplicationType}, {Type: GroupType, Relation: GroupMember}},
	}}},
	{Name: ScopeType, Relations: []Relation{{
		Name:     ScopeHolder, // applications that act for themselves
		Subjects: []SubjectType{{Type: GroupType, Relation: GroupMember}, {Type: ApplicationType}},
	}}},
	{
		Name: AudienceType,
		Relations: []Relation{
			{Name: AudienceCaller, Subjects: append([]SubjectType{{Type: UserType, Wildcard: true}, {Type: ApplicationType, Wildcard: true}}, actors...)},
			{Name: AudienceExchanger, Subjects: applications},
		},
		Actions: map[string]string{"call": AudienceCaller},
	},
	{
		Name: WebhookSubscriptionType,
		Relations: []Relation{
			{Name: WebhookOwner, Subjects: actors},
			{Name: WebhookViewer, Subjects: actors, Rewrites: []Rewrite{{Kind: This}, {Kind: Computed, Relation: WebhookOwner}}},
		},
		Actions: map[string]string{"manage": WebhookOwner, "view": WebhookViewer},
	},
	{Name: WorkloadIdentityType},
}

var (
	actors       = []SubjectType{{Type: UserType}, {Type: ApplicationType}, {Type: GroupType, Relation: GroupMember}}
	applications = []SubjectType{{Type: ApplicationType}}
)

// reserved names cannot be defined: system types, and words that paths of the API have in
// the place of a type.
var reserved = map[string]bool{
	UserType: true, ApplicationType: true, GroupType: true, ScopeType: true, AudienceType: true, WebhookSubscriptionType: true,
	WorkloadIdentityType: true,
	"relations":          true, "check": true, "check-batch": true,
}

// IsReserved reports whether no type can be defined with a name.
func IsReserved(name string) bool { return reserved[name] }

// IsSystem reports whether a type is built in.
func IsSystem(name string) bool {
	for i := range system {
		if system[i].Name == name {
			return true
		}
	}
	return false
}
