CREATE TABLE public.applications (
    tenant_id text NOT NULL,
    client_id text NOT NULL,
    id text NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    state text NOT NULL,
    allowed_scopes text NOT NULL,
    audience text NOT NULL,
    access_token_ttl_s bigint NOT NULL,
    signing_alg text NOT NULL,
    secret_hash bytea NOT NULL,
    previous_secret_hash bytea NOT NULL,
    previous_expires_at bigint NOT NULL,
    created_at bigint NOT NULL,
    allowed_origins text DEFAULT ''::text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    redirect_uris text DEFAULT ''::text NOT NULL,
    refresh_token_ttl_s bigint DEFAULT 2592000 NOT NULL,
    tags text DEFAULT ''::text NOT NULL,
    search text DEFAULT ''::text NOT NULL,
    updated_at bigint DEFAULT 0 NOT NULL,
    changed_by text DEFAULT ''::text NOT NULL,
    secret_rotated_at bigint DEFAULT 0 NOT NULL,
    last_used_at bigint DEFAULT 0 NOT NULL,
    token_exchange text DEFAULT ''::text NOT NULL,
    options text DEFAULT ''::text NOT NULL,
    service_provider text DEFAULT ''::text NOT NULL,
    entity_id text DEFAULT ''::text NOT NULL,
    claim_names text DEFAULT ''::text NOT NULL,
    source text DEFAULT ''::text NOT NULL,
    workload_issuers text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.assertion_sets (
    tenant_id text NOT NULL,
    name text NOT NULL,
    document text NOT NULL,
    assertions bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE public.authorization_requests (
    tenant_id text NOT NULL,
    id text NOT NULL,
    request text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    answer text DEFAULT ''::text NOT NULL,
    browser text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.authorizations (
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    client_id text NOT NULL,
    scopes text NOT NULL,
    created_at bigint NOT NULL,
    used_at bigint NOT NULL,
    claims text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.backup_codes (
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    hash text NOT NULL
);
CREATE TABLE public.client_assertions (
    tenant_id text NOT NULL,
    hash text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.codes (
    tenant_id text NOT NULL,
    hash text NOT NULL,
    grant_id text NOT NULL,
    client_id text NOT NULL,
    redirect_uri text NOT NULL,
    challenge text NOT NULL,
    expires_at bigint NOT NULL,
    used_at bigint NOT NULL,
    dpop_jkt text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.credentials (
    tenant_id text NOT NULL,
    credential_id text NOT NULL,
    user_id text NOT NULL,
    factor_id text NOT NULL
);
CREATE TABLE public.dead_jobs (
    tenant_id text NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    attempts bigint NOT NULL,
    created_at bigint NOT NULL,
    died_at bigint NOT NULL
);
CREATE TABLE public.device_codes (
    tenant_id text NOT NULL,
    hash text NOT NULL,
    user_hash text NOT NULL,
    client_id text NOT NULL,
    scope text NOT NULL,
    audience text NOT NULL,
    client_ip text NOT NULL,
    grant_id text NOT NULL,
    denied boolean NOT NULL,
    interval_s bigint NOT NULL,
    polled_at bigint NOT NULL,
    used_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.directory_versions (
    name text NOT NULL,
    version bigint NOT NULL
);
CREATE TABLE public.dpop_proofs (
    tenant_id text NOT NULL,
    replay_key text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.email_changes (
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    id text NOT NULL,
    new_email text NOT NULL,
    verified boolean NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.ended_sessions (
    tenant_id text NOT NULL,
    id text NOT NULL,
    user_id text NOT NULL
);
CREATE TABLE public.event_heads (
    tenant_id text NOT NULL,
    "position" bigint NOT NULL,
    floor bigint DEFAULT 0 NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    commit_events bigint DEFAULT 0 NOT NULL,
    floor_commit_events bigint DEFAULT 0 NOT NULL,
    floor_revision bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.event_readers (
    reader text NOT NULL,
    tenant_id text NOT NULL,
    "position" bigint NOT NULL
);
CREATE TABLE public.events (
    tenant_id text NOT NULL,
    "position" bigint NOT NULL,
    id text NOT NULL,
    type text NOT NULL,
    occurred_at bigint NOT NULL,
    origin text NOT NULL,
    data text NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    commit_events bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.external_identities (
    tenant_id text NOT NULL,
    connection_id text NOT NULL,
    subject text NOT NULL,
    user_id text NOT NULL,
    slug text NOT NULL,
    kind text NOT NULL,
    email text NOT NULL,
    linked_at bigint NOT NULL,
    last_used_at bigint NOT NULL
);
CREATE TABLE public.external_ids (
    tenant_id text NOT NULL,
    object_id text NOT NULL,
    client_id text NOT NULL,
    external_id text NOT NULL
);
CREATE TABLE public.external_sessions (
    tenant_id text NOT NULL,
    session_id text NOT NULL,
    connection_id text NOT NULL,
    subject text NOT NULL,
    provider_id text NOT NULL,
    hint bytea NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.factors (
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    label text NOT NULL,
    secret bytea NOT NULL,
    last_step bigint NOT NULL,
    created_at bigint NOT NULL,
    last_used_at bigint NOT NULL
);
CREATE TABLE public.federation_assertions (
    tenant_id text NOT NULL,
    connection_id text NOT NULL,
    id text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.federation_connections (
    tenant_id text NOT NULL,
    id text NOT NULL,
    slug text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    state text NOT NULL,
    settings text NOT NULL,
    client_secret bytea NOT NULL,
    private_key bytea NOT NULL,
    metadata text NOT NULL,
    metadata_xml text NOT NULL,
    check_at bigint NOT NULL,
    warned_at bigint NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE public.federation_domains (
    tenant_id text NOT NULL,
    domain text NOT NULL,
    connection_id text NOT NULL
);
CREATE TABLE public.federation_tests (
    tenant_id text NOT NULL,
    id text NOT NULL,
    connection_id text NOT NULL,
    report bytea NOT NULL,
    begun_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.goose_assertions (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_assertions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_assertions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_authn (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_authn ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_authn_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_controlplane (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_controlplane ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_controlplane_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_eventlog (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_eventlog ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_eventlog_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_external (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_external ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_external_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_factor (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_factor ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_factor_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_federation (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_federation ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_federation_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_federation_signin (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_federation_signin ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_federation_signin_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_idempotency (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_idempotency ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_idempotency_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_identity (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_identity ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_identity_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_jobs (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_jobs ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_lock (
    lock_id bigint NOT NULL,
    locked boolean DEFAULT false NOT NULL,
    locked_at timestamp with time zone,
    locked_by text,
    lease_expires_at timestamp with time zone,
    updated_at timestamp with time zone
);
CREATE TABLE public.goose_management (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_management ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_management_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_masterkey (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_masterkey ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_masterkey_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_oauth (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_oauth ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_oauth_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_onetime (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_onetime ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_onetime_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_ratelimit (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_ratelimit ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_ratelimit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_resources (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_resources ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_resources_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_samlkeys (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_samlkeys ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_samlkeys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_session (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_session ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_session_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_tenantkeys (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_tenantkeys ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_tenantkeys_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_tuplestore (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_tuplestore ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_tuplestore_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.goose_webhooks (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);
ALTER TABLE public.goose_webhooks ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_webhooks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.grants (
    tenant_id text NOT NULL,
    id text NOT NULL,
    client_id text NOT NULL,
    user_id text NOT NULL,
    session_id text NOT NULL,
    scope text NOT NULL,
    audience text NOT NULL,
    nonce text NOT NULL,
    methods text NOT NULL,
    auth_time bigint NOT NULL,
    second_factor_at bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    revoked_at bigint NOT NULL,
    name_id text DEFAULT ''::text NOT NULL,
    authorization_details text DEFAULT ''::text NOT NULL,
    requested_claims text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.idempotency_keys (
    tenant_id text NOT NULL,
    scope_hash bytea NOT NULL,
    request_hash bytea NOT NULL,
    commit_id text NOT NULL,
    holder text NOT NULL,
    lease_until bigint NOT NULL,
    status bigint NOT NULL,
    response bytea NOT NULL,
    shard bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.identity_settings (
    tenant_id text NOT NULL,
    settings text NOT NULL
);
CREATE TABLE public.jobs (
    tenant_id text NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    payload bytea NOT NULL,
    attempts bigint NOT NULL,
    created_at bigint NOT NULL,
    due_at bigint NOT NULL
);
CREATE TABLE public.known_devices (
    tenant_id text NOT NULL,
    user_id text NOT NULL,
    fingerprint text NOT NULL,
    last_seen_at bigint NOT NULL
);
CREATE TABLE public.lease_nodes (
    node_id text NOT NULL,
    address text NOT NULL,
    lease bigint NOT NULL,
    renewals bigint NOT NULL
);
CREATE TABLE public.master_keys (
    key_id text NOT NULL,
    "position" bigint NOT NULL,
    root bytea NOT NULL,
    created_at bigint NOT NULL,
    retired_at bigint NOT NULL
);
CREATE TABLE public.oauth_settings (
    tenant_id text NOT NULL,
    settings text NOT NULL
);
CREATE TABLE public.onetime_tokens (
    tenant_id text NOT NULL,
    id text NOT NULL,
    kind text NOT NULL,
    user_id text NOT NULL,
    payload bytea NOT NULL,
    attempts bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.organization_invitations (
    org_id text NOT NULL,
    id text NOT NULL,
    email text NOT NULL,
    email_norm text NOT NULL,
    role text NOT NULL,
    state text NOT NULL,
    token_hash text NOT NULL,
    invited_by text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    accepted_at bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.organization_members (
    org_id text NOT NULL,
    id text NOT NULL,
    user_id text NOT NULL,
    invited_by text NOT NULL,
    joined_at bigint NOT NULL
);
CREATE TABLE public.organizations (
    id text NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.rate_limits (
    tenant_id text NOT NULL,
    bucket text NOT NULL,
    arrival bigint NOT NULL,
    shard bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.refresh_tokens (
    tenant_id text NOT NULL,
    hash text NOT NULL,
    grant_id text NOT NULL,
    client_id text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    rotated_at bigint NOT NULL,
    dpop_jkt text DEFAULT ''::text NOT NULL,
    predecessor text DEFAULT ''::text NOT NULL,
    seed text DEFAULT ''::text NOT NULL
);
CREATE TABLE public.relation_tuple_history (
    tenant_id text NOT NULL,
    object_type text NOT NULL,
    object_id text NOT NULL,
    relation text NOT NULL,
    subject_type text NOT NULL,
    subject_id text NOT NULL,
    subject_relation text NOT NULL,
    condition text NOT NULL,
    context text NOT NULL,
    expires_at bigint NOT NULL,
    created_rev bigint NOT NULL,
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    deleted_rev bigint NOT NULL
);
CREATE TABLE public.relation_tuples (
    tenant_id text NOT NULL,
    object_type text NOT NULL,
    object_id text NOT NULL,
    relation text NOT NULL,
    subject_type text NOT NULL,
    subject_id text NOT NULL,
    subject_relation text NOT NULL,
    condition text NOT NULL,
    context text NOT NULL,
    expires_at bigint NOT NULL,
    created_rev bigint NOT NULL,
    created_at bigint NOT NULL,
    created_by text NOT NULL
);
CREATE TABLE public.resource_attributes (
    tenant_id text NOT NULL,
    type text NOT NULL,
    external_id text NOT NULL,
    attributes text,
    updated_at bigint NOT NULL
);
CREATE TABLE public.retired_clients (
    tenant_id text NOT NULL,
    client_id text NOT NULL,
    retired_at bigint NOT NULL
);
CREATE TABLE public.revocations (
    tenant_id text NOT NULL,
    kind text NOT NULL,
    id text NOT NULL,
    changed_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.saml_keys (
    tenant_id text NOT NULL,
    key_use text NOT NULL,
    id text NOT NULL,
    state text NOT NULL,
    private_sealed bytea NOT NULL,
    certificate bytea NOT NULL,
    created_at bigint NOT NULL,
    activated_at bigint NOT NULL,
    retired_at bigint NOT NULL,
    due_at bigint NOT NULL
);
CREATE TABLE public.saml_logouts (
    tenant_id text NOT NULL,
    id text NOT NULL,
    logout bytea NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.scopes (
    tenant_id text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    entitlement text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.service_accounts (
    org_id text NOT NULL,
    id text NOT NULL,
    client_id text NOT NULL,
    name text NOT NULL,
    created_by text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.sessions (
    tenant_id text NOT NULL,
    id text NOT NULL,
    user_id text NOT NULL,
    token_hash bytea NOT NULL,
    methods text NOT NULL,
    auth_time bigint NOT NULL,
    second_factor_at bigint NOT NULL,
    must_enrol boolean NOT NULL,
    created_at bigint NOT NULL,
    last_active_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    idle bigint NOT NULL,
    ip text NOT NULL,
    user_agent text NOT NULL
);
CREATE TABLE public.sign_in_attempts (
    tenant_id text NOT NULL,
    account text NOT NULL,
    failures bigint NOT NULL,
    next_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE public.signing_keys (
    tenant_id text NOT NULL,
    kid text NOT NULL,
    alg text NOT NULL,
    state text NOT NULL,
    private_sealed bytea NOT NULL,
    created_at bigint NOT NULL,
    activated_at bigint DEFAULT 0 NOT NULL,
    retired_at bigint DEFAULT 0 NOT NULL,
    removed_at bigint DEFAULT 0 NOT NULL,
    due_at bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.tenant_commits (
    tenant_id text NOT NULL,
    rev bigint NOT NULL,
    actor text NOT NULL,
    committed_at bigint NOT NULL,
    changes text NOT NULL,
    event text DEFAULT ''::text NOT NULL,
    commit_events bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.tenant_heads (
    tenant_id text NOT NULL,
    epoch text NOT NULL,
    rev bigint NOT NULL,
    schema_rev bigint NOT NULL,
    min_rev bigint NOT NULL,
    commit_events bigint DEFAULT 0 NOT NULL,
    collected_rev bigint DEFAULT 0 NOT NULL,
    committed_at bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='20');
CREATE TABLE public.tenant_keys (
    tenant_id text NOT NULL,
    "position" bigint NOT NULL,
    key_id text NOT NULL,
    sealed bytea NOT NULL
);
CREATE TABLE public.tenant_leases (
    tenant_id text NOT NULL,
    node_id text NOT NULL
);
CREATE TABLE public.tenant_receipts (
    tenant_id text NOT NULL,
    commit_id text NOT NULL,
    request_hash bytea NOT NULL,
    rev bigint NOT NULL,
    result text NOT NULL,
    committed_at bigint NOT NULL
);
CREATE TABLE public.tenant_schemas (
    tenant_id text NOT NULL,
    rev bigint NOT NULL,
    document bytea NOT NULL
);
CREATE TABLE public.tenants (
    id text NOT NULL,
    org_id text NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    base_url text NOT NULL,
    host text NOT NULL,
    state text NOT NULL,
    created_at bigint NOT NULL,
    rate_limits text DEFAULT ''::text NOT NULL,
    suspended_at bigint DEFAULT 0 NOT NULL,
    suspend_reason text DEFAULT ''::text NOT NULL,
    decommissioned_at bigint DEFAULT 0 NOT NULL,
    purge_at bigint DEFAULT 0 NOT NULL,
    environment text DEFAULT 'production'::text NOT NULL,
    region text DEFAULT ''::text NOT NULL,
    created_by text DEFAULT ''::text NOT NULL,
    updated_at bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.trusted_issuers (
    tenant_id text NOT NULL,
    id text NOT NULL,
    issuer text NOT NULL,
    enabled boolean NOT NULL,
    settings text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    changed_by text NOT NULL
);
CREATE TABLE public.user_groups (
    tenant_id text NOT NULL,
    id text NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    search text NOT NULL,
    scopes text NOT NULL,
    member_count bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE public.user_import_chunks (
    tenant_id text NOT NULL,
    import_id text NOT NULL,
    chunk bigint NOT NULL,
    sealed bytea NOT NULL
);
CREATE TABLE public.user_import_errors (
    tenant_id text NOT NULL,
    import_id text NOT NULL,
    line bigint NOT NULL,
    email text NOT NULL,
    code text NOT NULL,
    message text NOT NULL
);
CREATE TABLE public.user_imports (
    tenant_id text NOT NULL,
    id text NOT NULL,
    state text NOT NULL,
    origin text NOT NULL,
    caller text NOT NULL,
    total bigint NOT NULL,
    imported bigint NOT NULL,
    failed bigint NOT NULL,
    chunks bigint NOT NULL,
    next_chunk bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint NOT NULL,
    finished_at bigint NOT NULL
);
CREATE TABLE public.user_search (
    tenant_id text NOT NULL,
    created_at bigint NOT NULL,
    user_id text NOT NULL,
    text text NOT NULL
);
CREATE TABLE public.users (
    tenant_id text NOT NULL,
    id text NOT NULL,
    email text NOT NULL,
    email_norm text NOT NULL,
    email_verified boolean NOT NULL,
    state text NOT NULL,
    name text NOT NULL,
    given_name text NOT NULL,
    family_name text NOT NULL,
    picture text NOT NULL,
    locale text NOT NULL,
    attributes text NOT NULL,
    password_hash text NOT NULL,
    password_must_be_reset boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    last_signed_in_at bigint NOT NULL,
    must_enrol boolean DEFAULT false NOT NULL,
    signed_out_at bigint DEFAULT 0 NOT NULL,
    password_check_at bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.webhook_dead_letters (
    tenant_id text NOT NULL,
    subscription_id text NOT NULL,
    id text NOT NULL,
    delivery_id text NOT NULL,
    event_id text NOT NULL,
    event_type text NOT NULL,
    event text NOT NULL,
    reason text NOT NULL,
    state text NOT NULL,
    history text NOT NULL,
    last_response text NOT NULL,
    dead_lettered_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    replayed_delivery_id text NOT NULL,
    dropped_by text NOT NULL,
    dropped_at bigint NOT NULL
);
CREATE TABLE public.webhook_deliveries (
    tenant_id text NOT NULL,
    subscription_id text NOT NULL,
    id text NOT NULL,
    "position" bigint NOT NULL,
    event_id text NOT NULL,
    event_type text NOT NULL,
    event text NOT NULL,
    operations text NOT NULL,
    size bigint NOT NULL,
    status text NOT NULL,
    attempts bigint NOT NULL,
    history text NOT NULL,
    last_response text NOT NULL,
    due_at bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.webhook_lanes (
    tenant_id text NOT NULL,
    subscription_id text NOT NULL,
    due_at bigint NOT NULL,
    holder text DEFAULT ''::text NOT NULL,
    lease_until bigint DEFAULT 0 NOT NULL,
    clock_offset bigint DEFAULT 0 NOT NULL,
    paused_at bigint DEFAULT 0 NOT NULL,
    failing_since bigint DEFAULT 0 NOT NULL,
    failing_noted bigint DEFAULT 0 NOT NULL,
    last_success_at bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.webhook_subscriptions (
    tenant_id text NOT NULL,
    id text NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    description text NOT NULL,
    events text NOT NULL,
    visible_to text NOT NULL,
    owners text NOT NULL,
    viewers text NOT NULL,
    state text NOT NULL,
    disabled_reason text NOT NULL,
    secret bytea NOT NULL,
    previous_secret bytea NOT NULL,
    previous_expires_at bigint NOT NULL,
    after_position bigint NOT NULL,
    until_position bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
INSERT INTO public.applications VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'client_ny6smcwxcd4cbxtiuoathkklbl', 'app_mbse6gzbeysbgojm3omos3t7vr', 'bootstrap', 'm2m', 'enabled', 'me:read me:write users:read users:write groups:read groups:write applications:read applications:write federation:read federation:write resources:read resources:write webhooks:read webhooks:write settings:read settings:write scim:write audit:read', '', 3600, 'ES256', '\xd0261592d00c3ba7775db99fba7273652774e7cb29207fb2111608fffcf2fb14', '\x0000000000000000000000000000000000000000000000000000000000000000', 0, 1795599041871733, '', '', '', 2592000, '', 'bootstrap
client_ny6smcwxcd4cbxtiuoathkklbl', 1795599041871733, '', 0, 1795599042494666, '{"enabled":false,"allowed_audiences":[],"require_client_authentication":true,"act_as":{"enabled":false,"allowed_subject_types":["user"]},"subject_tokens":"any"}', '{"profile":"default","first_party":true,"token_endpoint_auth_method":"client_secret_basic","backchannel_logout_session_required":false,"require_pushed_authorization_requests":false,"require_pkce":true,"dpop_bound_access_tokens":false,"id_token_signed_response_alg":"ES256","group_scopes":"all","authorization_signed_response_alg":"ES256","introspection_signed_response_alg":"ES256","require_signed_request_object":false,"introspect_all":false}', '{"entity_id":"","acs_url":"","name_id_format":"","sign_response":false,"sign_assertion":false,"encrypt_assertion":false,"want_authn_requests_signed":false,"allow_idp_initiated":false}', '', '', '', '');
INSERT INTO public.applications VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'client_tytzaederfg4zz44fggub7pw72', 'app_efqn56qwrmapuv5ja6kuoeamms', 'Notes', 'spa', 'enabled', 'openid offline_access', '', 3600, 'ES256', '\x0000000000000000000000000000000000000000000000000000000000000000', '\x0000000000000000000000000000000000000000000000000000000000000000', 0, 1795599043422207, '', '', 'https://notes.example.com/callback', 2592000, '', 'notes
client_tytzaederfg4zz44fggub7pw72', 1795599043422207, 'client_ny6smcwxcd4cbxtiuoathkklbl', 0, 1795599044311655, '{"enabled":false,"allowed_audiences":[],"require_client_authentication":false,"act_as":{"enabled":false,"allowed_subject_types":["user"]},"subject_tokens":"any"}', '{"profile":"default","first_party":true,"token_endpoint_auth_method":"none","backchannel_logout_session_required":false,"require_pushed_authorization_requests":false,"require_pkce":true,"dpop_bound_access_tokens":false,"id_token_signed_response_alg":"ES256","group_scopes":"all","authorization_signed_response_alg":"ES256","introspection_signed_response_alg":"ES256","require_signed_request_object":false,"introspect_all":false}', '{"entity_id":"","acs_url":"","name_id_format":"","sign_response":false,"sign_assertion":false,"encrypt_assertion":false,"want_authn_requests_signed":false,"allow_idp_initiated":false}', '', '', '', '');
INSERT INTO public.applications VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'client_wqho2ztek2uc36g42lidzbdqq3', 'app_hodu7knhm6g754k3he5hdoemk5', 'Wiki', 'saml', 'enabled', '', '', 3600, 'ES256', '\x0000000000000000000000000000000000000000000000000000000000000000', '\x0000000000000000000000000000000000000000000000000000000000000000', 0, 1795599044616935, '', '', '', 2592000, '', 'wiki
client_wqho2ztek2uc36g42lidzbdqq3', 1795599044616935, 'client_ny6smcwxcd4cbxtiuoathkklbl', 0, 0, '{"enabled":false,"allowed_audiences":[],"require_client_authentication":false,"act_as":{"enabled":false,"allowed_subject_types":["user"]},"subject_tokens":"any"}', '{"profile":"default","first_party":true,"token_endpoint_auth_method":"none","backchannel_logout_session_required":false,"require_pushed_authorization_requests":false,"require_pkce":true,"dpop_bound_access_tokens":false,"id_token_signed_response_alg":"ES256","group_scopes":"all","authorization_signed_response_alg":"ES256","introspection_signed_response_alg":"ES256","require_signed_request_object":false,"introspect_all":false}', '{"entity_id":"https://wiki.example.com/saml","acs_url":"https://wiki.example.com/saml/acs","name_id_format":"persistent","sign_response":false,"sign_assertion":true,"encrypt_assertion":false,"want_authn_requests_signed":false,"allow_idp_initiated":false}', 'https://wiki.example.com/saml', '', '', '');
INSERT INTO public.authorizations VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_3wm5x6c7qtje6d2pejm3wtni24', 'client_tytzaederfg4zz44fggub7pw72', '', 1795599044110180, 1795599044110180, '');
INSERT INTO public.backup_codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'B9NXIpM7bnHDCuEDbtDHlN6529BMP5HPGwNCYEjDq3E');
INSERT INTO public.backup_codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'OazmernrG1qA-43nc0PsltQkYOUK4pZPTfKu4Dwrjjg');
INSERT INTO public.backup_codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'rL358Cj9J2TGHuJlXP9ykfG4fm-fzcXUQm6FBKYCRBA');
INSERT INTO public.backup_codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'saWpMXMdE0wkxAHf6jIE-FQJRXSrhRn4MwhrGlc0knM');
INSERT INTO public.backup_codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', '5llsbxCtVjBH5WSZkbvUPkGN7-CsvpAQOct1xrFM2LM');
INSERT INTO public.backup_codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'OtepSsNK7Hpsmt8u5qOaFXnaL0--IWM9RwZOoUIE8xM');
INSERT INTO public.backup_codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'UFwDEwsLHWluWXXDkE7bBehuGIQK___usx6vHivq3nY');
INSERT INTO public.backup_codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', '3VSQbAlmPn89yXz5y-RoB7IhY-nHh3m7xuUAi1LSG6g');
INSERT INTO public.backup_codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'xBe_u6PDlWSLW0PlzbSP1ko0joGe1v9nMnHRHnRBx4o');
INSERT INTO public.backup_codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'z7J5iEsQxFQAx3LMxdxx8XFr1SZ63eQ_pdEnbyAk_L0');
INSERT INTO public.codes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'ariWFt-ixgcPJnLp5BdON9IzJA8-3SIsSNH3ih_CdDs', 'gnt_7pgq6hjxudj3e4huqyzh2w353t', 'client_tytzaederfg4zz44fggub7pw72', 'https://notes.example.com/callback', 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', 1795599104110178, 1795599044305963, '');
INSERT INTO public.directory_versions VALUES ('tenants', 2);
INSERT INTO public.event_heads VALUES ('org_6qzkk5ufdopoftpp3jrk6sslyq', 3, 0, 0, 0, 0, 0);
INSERT INTO public.event_heads VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 25, 0, 12, 4, 0, 0);
INSERT INTO public.event_readers VALUES ('webhooks', 'tnt_jfkymfkczeie4zlc2so2g7njeo', 25);
INSERT INTO public.events VALUES ('org_6qzkk5ufdopoftpp3jrk6sslyq', 1, 'evt_hmnsxs7z3owtlb6lwl3k6jyntd', 'organization.created', 1795599041866232, '{}', '{"id":"org_6qzkk5ufdopoftpp3jrk6sslyq","slug":"dev","name":"dev","state":"active","created_at":"2026-11-25T09:30:41.865Z","updated_at":"2026-11-25T09:30:41.865Z"}', 0, 0);
INSERT INTO public.events VALUES ('org_6qzkk5ufdopoftpp3jrk6sslyq', 2, 'evt_choo53eshnsytevi6775jtl557', 'tenant.created', 1795599041870721, '{}', '{"id":"tnt_jfkymfkczeie4zlc2so2g7njeo","org_id":"org_6qzkk5ufdopoftpp3jrk6sslyq","slug":"dev","name":"dev","environment":"production","region":null,"state":"provisioning","base_url":"http://dev.localhost:8080","created_by":null,"created_at":"2026-11-25T09:30:41.869Z","updated_at":"2026-11-25T09:30:41.869Z","suspended_at":null,"suspend_reason":null,"decommissioned_at":null,"purge_at":null}', 0, 0);
INSERT INTO public.events VALUES ('org_6qzkk5ufdopoftpp3jrk6sslyq', 3, 'evt_bek4e2ftwhv224pnfkwzolpbz3', 'member.joined', 1795599042414083, '{}', '{"id":"mem_irqmmd6so6wrceuoai375sxubf","org_id":"org_6qzkk5ufdopoftpp3jrk6sslyq","user_id":"usr_eaxmihapr3flmf6gkoir2zwtkr","email":"owner@dev.localhost","name":"Owner","role":"owner","mfa_enrolled":false,"joined_at":"2026-11-25T09:30:42.306Z","invited_by":null,"last_active_at":null}', 0, 0);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 1, 'evt_s2gedbyx2hwlavysgvc6d2tcci', 'resource_type.created', 1795599042911282, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_2763hxsc43jxktxshzcvrs3ktx","client_ip":"127.0.0.1"}', '{"resource_type":{"actions":{},"conditions":[{"expression":"address.in_cidr(office)","name":"from_office","parameters":{"address":"ipaddress","office":"string"}}],"created_at":"2026-11-25T09:30:42.656Z","description":"","name":"folder","relations":[{"name":"owner","rewrites":[]},{"name":"viewer","rewrites":[{"kind":"this"},{"kind":"computed","relation":"owner"}]}],"updated_at":"2026-11-25T09:30:42.656Z"}}', 3, 0);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 2, 'evt_tddytfvxz4g5bjintnhxpc6pkf', 'resource_type.created', 1795599042911304, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_2763hxsc43jxktxshzcvrs3ktx","client_ip":"127.0.0.1"}', '{"resource_type":{"actions":{},"conditions":[],"created_at":"2026-11-25T09:30:42.656Z","description":"","name":"document","relations":[{"name":"parent","rewrites":[],"subjects":["folder"]},{"name":"banned","rewrites":[]},{"name":"viewer","rewrites":[{"kind":"exclusion","base":{"kind":"union","children":[{"kind":"this"},{"kind":"tuple_to_userset","tupleset":"parent","computed":"viewer"}]},"subtract":{"kind":"computed","relation":"banned"}}]}],"updated_at":"2026-11-25T09:30:42.656Z"}}', 3, 0);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 3, 'evt_ctnoqfwdx6zu5pi62wvkzcqvc2', 'resource.created', 1795599042934765, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_2tortelidrnc75tzcifxiknz2r","client_ip":"127.0.0.1"}', '{"resource":{"attributes":{"pages":3},"external_id":"plans/q1 draft","type":"document"}}', 4, 0);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 6, 'evt_szxzpnlyuvdo7rh6fpngsfv24y', 'user.created', 1795599043402034, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_rqaekrg77avl5uiqzant6xkmcs","client_ip":"127.0.0.1"}', '{"user":{"id":"usr_3wm5x6c7qtje6d2pejm3wtni24","email":"zoe@example.com","email_verified":true,"state":"active","name":null,"given_name":null,"family_name":null,"picture":null,"locale":null,"attributes":null,"password_set":true,"password_must_be_reset":false,"created_at":"2026-11-25T09:30:43.401Z","updated_at":"2026-11-25T09:30:43.401Z","last_signed_in_at":null},"source":"admin"}', 6, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 7, 'evt_jhdspwz64tf3trh6ys2zyx75n5', 'application.created', 1795599043425972, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_i7a5c5aeh2koyuszt2mxtoisw7","client_ip":"127.0.0.1"}', '{"application":{"id":"app_efqn56qwrmapuv5ja6kuoeamms","client_id":"client_tytzaederfg4zz44fggub7pw72","name":"Notes","description":"","type":"spa","state":"enabled","dynamically_registered":false,"created_at":"2026-11-25T09:30:43.422Z","updated_at":"2026-11-25T09:30:43.422Z","redirect_uris":["https://notes.example.com/callback"],"allowed_origins":[],"allowed_scopes":["openid","offline_access"],"tags":[],"grant_types":["authorization_code","refresh_token"],"audience":null,"access_token_ttl_s":3600,"refresh_token_ttl_s":2592000,"access_token_signing_alg":"ES256","token_exchange":{"enabled":false,"allowed_audiences":[],"require_client_authentication":false,"act_as":{"enabled":false,"allowed_subject_types":["user"]},"subject_tokens":"any"},"profile":"default","logo_uri":null,"first_party":true,"token_endpoint_auth_method":"none","jwks":null,"jwks_uri":null,"require_pushed_authorization_requests":false,"require_pkce":true,"dpop_bound_access_tokens":false,"require_dpop_nonce":false,"tls_client_certificate_bound_access_tokens":false,"tls_client_auth_subject_dn":null,"tls_client_auth_san_dns":null,"tls_client_auth_san_uri":null,"tls_client_auth_san_ip":null,"tls_client_auth_san_email":null,"id_token_signed_response_alg":"ES256","group_scopes":"all","authorization_signed_response_alg":"ES256","introspection_signed_response_alg":"ES256","userinfo_signed_response_alg":null,"token_endpoint_auth_signing_alg":null,"request_uris":[],"request_object_signing_alg":null,"require_signed_request_object":false,"post_logout_redirect_uris":[],"backchannel_logout_uri":null,"backchannel_logout_session_required":false,"frontchannel_logout_uri":null,"frontchannel_logout_session_required":false,"introspect_all":false,"claims":[],"workload_identities":[],"secret_last_rotated_at":null,"audit_summary":{"last_change_at":"2026-11-25T09:30:43.422Z","last_change_by":"client_ny6smcwxcd4cbxtiuoathkklbl","last_used_at":null},"can_rotate_secret":false,"can_disable":false,"can_delete":false}}', 6, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 8, 'evt_vi5ybj37kw62httsjgf7bbj2pw', 'user.signed_in', 1795599043979102, '{"actor":{"type":"user","id":"usr_3wm5x6c7qtje6d2pejm3wtni24"},"request_id":"req_dbvmizp54mqqe27jrgnsylezsv","client_ip":"127.0.0.1"}', '{"user":{"id":"usr_3wm5x6c7qtje6d2pejm3wtni24","email":"zoe@example.com"},"amr":["pwd"]}', 6, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 9, 'evt_m4ueivcnyhhetsj74mdl6rx3nx', 'session.created', 1795599043979110, '{"actor":{"type":"user","id":"usr_3wm5x6c7qtje6d2pejm3wtni24"},"request_id":"req_dbvmizp54mqqe27jrgnsylezsv","client_ip":"127.0.0.1"}', '{"session":{"id":"ses_77seg3tsgiynvv47cg624u5fax","ip":"127.0.0.1","user_agent":"Go-http-client/1.1"},"user":{"id":"usr_3wm5x6c7qtje6d2pejm3wtni24"}}', 6, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 10, 'evt_hn7curvz6chzqnp5ru4vdge7jy', 'user.created', 1795599044524281, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_a7c34trtqrgq7u5hzr5lpzidw3","client_ip":"127.0.0.1"}', '{"user":{"id":"usr_qrjizdvyfd2jfqwkgpsfhxuzm6","email":"ann@example.com","email_verified":true,"state":"active","name":"Ann","given_name":null,"family_name":null,"picture":null,"locale":null,"attributes":{"desk":4},"password_set":true,"password_must_be_reset":false,"created_at":"2026-11-25T09:30:44.524Z","updated_at":"2026-11-25T09:30:44.524Z","last_signed_in_at":null},"source":"admin"}', 6, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 11, 'evt_epkd2u5gk5gycsbwoav5tcagau', 'user.signed_in', 1795599044566437, '{"actor":{"type":"user","id":"usr_qrjizdvyfd2jfqwkgpsfhxuzm6"},"request_id":"req_v44om5z2jluymluip7kaclrywl","client_ip":"127.0.0.1"}', '{"user":{"id":"usr_qrjizdvyfd2jfqwkgpsfhxuzm6","email":"ann@example.com"},"amr":["pwd"]}', 6, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 12, 'evt_boqqcebh2w3pyd5hnwlguejqgt', 'session.created', 1795599044566446, '{"actor":{"type":"user","id":"usr_qrjizdvyfd2jfqwkgpsfhxuzm6"},"request_id":"req_v44om5z2jluymluip7kaclrywl","client_ip":"127.0.0.1"}', '{"session":{"id":"ses_3uxdkfshadowfqk3wkupqdzh5k","ip":"127.0.0.1","user_agent":"Go-http-client/1.1"},"user":{"id":"usr_qrjizdvyfd2jfqwkgpsfhxuzm6"}}', 6, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 13, 'evt_whidjbsj3h4omuwcmjmhmbdf2m', 'user.mfa_enrolled', 1795599044582358, '{"actor":{"type":"user","id":"usr_qrjizdvyfd2jfqwkgpsfhxuzm6"},"client_id":"first-party","request_id":"req_h2zsf5ogfiuuyvbtdr5f5wdhpv","client_ip":"127.0.0.1"}', '{"user":{"id":"usr_qrjizdvyfd2jfqwkgpsfhxuzm6","email":"ann@example.com"},"factor":{"id":"factor_m7aeptpsmwaal4j4o2s4dkieru","kind":"totp","label":"App"}}', 6, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 23, 'evt_qvdf6m65htizejwqpp76kbm6i6', 'group.created', 1795599044640850, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_hgwyk442temny3nzwu7ym3agjj","client_ip":"127.0.0.1"}', '{"group":{"id":"grp_upqwtd62hjlhstcoabnxloofgi","slug":"ops","name":"Operations","description":"","scopes":[],"member_count":0,"created_at":"2026-11-25T09:30:44.635Z"}}', 10, 3);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 14, 'evt_srmz7uggzere2qlyjh3lt3b6cz', 'user.backup_codes_regenerated', 1795599044596824, '{"actor":{"type":"user","id":"usr_qrjizdvyfd2jfqwkgpsfhxuzm6"},"client_id":"first-party","request_id":"req_fuucb3xsqbvnqlpnpffvbkwzsj","client_ip":"127.0.0.1"}', '{"user":{"id":"usr_qrjizdvyfd2jfqwkgpsfhxuzm6","email":"ann@example.com"}}', 6, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 15, 'evt_ugcv33mvjmg75c4brafkzj4xma', 'scope.created', 1795599044599961, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_xfqqsiwtycxnqtldkgg5xgttts","client_ip":"127.0.0.1"}', '{"scope":{"name":"notes:read","description":"Read notes","entitlement":"group","built_in":false,"created_at":"2026-11-25T09:30:44.599Z"}}', 6, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 16, 'evt_74rbzx46u3ljrsnyjfozo3es7e', 'group.created', 1795599044602549, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_hrbx62hf67vhxoaydknpxjj22r","client_ip":"127.0.0.1"}', '{"group":{"id":"grp_2qpuh6vegn2kicjy77bbyz6onv","slug":"eng","name":"Engineering","description":"","scopes":["notes:read"],"member_count":0,"created_at":"2026-11-25T09:30:44.601Z"}}', 7, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 17, 'evt_6oa36b64ubdddqp3ckpbfudeik', 'group.member_added', 1795599044608202, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_mdswclqqlon4qyx5vr7cmpnn2v","client_ip":"127.0.0.1"}', '{"group":{"id":"grp_2qpuh6vegn2kicjy77bbyz6onv","slug":"eng"},"user":{"id":"usr_qrjizdvyfd2jfqwkgpsfhxuzm6"}}', 8, 2);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 19, 'evt_trdhltrglxwkkk5u2abzw6sapl', 'federation.connection_created', 1795599044614487, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_qsfevbv55y2xfvldo27ozdgrk7","client_ip":"127.0.0.1"}', '{"connection":{"id":"fed_i2a7fdmcoppiop4zrhb2k7axek","slug":"google","kind":"social.google","name":"Google","state":"enabled","attribute_mapping":{},"group_mapping":[],"jit_provisioning":true,"link_policy":"verified_email","trust_email":false,"second_factor":"ask","domains":[],"client_id":"stonetown","client_secret_set":true,"scopes":["openid","profile","email"],"callback_url":"http://dev.localhost:8080/federation/google/callback","metadata_refreshed_at":null,"metadata_failing_since":null,"created_at":"2026-11-25T09:30:44.613Z","updated_at":"2026-11-25T09:30:44.613Z"}}', 9, 3);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 20, 'evt_ymos7jegk6nqzty3t6wqi5snpa', 'application.created', 1795599044617395, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_l3g3w4usuo7ukzjxylitptcxav","client_ip":"127.0.0.1"}', '{"application":{"id":"app_hodu7knhm6g754k3he5hdoemk5","client_id":"client_wqho2ztek2uc36g42lidzbdqq3","name":"Wiki","description":"","type":"saml","state":"enabled","dynamically_registered":false,"created_at":"2026-11-25T09:30:44.616Z","updated_at":"2026-11-25T09:30:44.616Z","redirect_uris":[],"allowed_origins":[],"allowed_scopes":[],"tags":[],"grant_types":[],"audience":null,"access_token_ttl_s":3600,"refresh_token_ttl_s":2592000,"access_token_signing_alg":"ES256","token_exchange":{"enabled":false,"allowed_audiences":[],"require_client_authentication":false,"act_as":{"enabled":false,"allowed_subject_types":["user"]},"subject_tokens":"any"},"profile":"default","logo_uri":null,"first_party":true,"token_endpoint_auth_method":"none","jwks":null,"jwks_uri":null,"require_pushed_authorization_requests":false,"require_pkce":true,"dpop_bound_access_tokens":false,"require_dpop_nonce":false,"tls_client_certificate_bound_access_tokens":false,"tls_client_auth_subject_dn":null,"tls_client_auth_san_dns":null,"tls_client_auth_san_uri":null,"tls_client_auth_san_ip":null,"tls_client_auth_san_email":null,"id_token_signed_response_alg":"ES256","group_scopes":"all","authorization_signed_response_alg":"ES256","introspection_signed_response_alg":"ES256","userinfo_signed_response_alg":null,"token_endpoint_auth_signing_alg":null,"request_uris":[],"request_object_signing_alg":null,"require_signed_request_object":false,"post_logout_redirect_uris":[],"backchannel_logout_uri":null,"backchannel_logout_session_required":false,"frontchannel_logout_uri":null,"frontchannel_logout_session_required":false,"introspect_all":false,"claims":[],"workload_identities":[],"entity_id":"https://wiki.example.com/saml","acs_url":"https://wiki.example.com/saml/acs","name_id_format":"persistent","sign_response":false,"sign_assertion":true,"encrypt_assertion":false,"want_authn_requests_signed":false,"allow_idp_initiated":false,"secret_last_rotated_at":null,"audit_summary":{"last_change_at":"2026-11-25T09:30:44.616Z","last_change_by":"client_ny6smcwxcd4cbxtiuoathkklbl","last_used_at":null},"can_rotate_secret":false,"can_disable":false,"can_delete":false}}', 9, 3);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 21, 'evt_leee7vad5bhvpqgldpndqyzlzl', 'tenant.settings_updated', 1795599044626089, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_gvrvb7ytwu45mbcnvdikfbkrxr","client_ip":"127.0.0.1"}', '{"settings":{"rate_limits":{},"password_policy":{"min_length":8,"max_length":128},"mfa_policy":{"mode":"optional","kinds":["sms","totp","webauthn"]},"session":{"idle_s":86400,"absolute_s":2592000},"sign_up":"open","require_verified_email":true,"dcr_mode":"open","dcr_require_pkce":true,"client_id_documents":"off","client_id_document_hosts":[],"require_state":true,"refresh_reuse_leeway_s":0,"refresh_family_max_s":7776000,"previous_secret_ttl_s":259200,"client_assertion_max_s":3600,"token_defaults":{"access_token_ttl_s":3600,"refresh_token_ttl_s":2592000},"trusted_origins":[]},"changes":{"dcr_mode":["off","open"]}}', 9, 3);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 22, 'evt_vj526zxctktx4an2zhgtw4d7k4', 'webhook.subscription_created', 1795599044628981, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_7tcvgmlccgetad6gav6tefvhnl","client_ip":"127.0.0.1"}', '{"subscription":{"id":"whs_hrwkxdmsmiqlywnxmqw2nviags","name":"hook","url":"http://127.0.0.1:40755","description":"","events":["group.created"],"visible_to":null,"owners":[],"viewers":[],"state":"enabled","disabled_reason":null,"failing_since":null,"last_success_at":null,"previous_secret_expires_at":null,"created_at":"2026-11-25T09:30:44.628Z","updated_at":"2026-11-25T09:30:44.628Z"}}', 9, 3);
INSERT INTO public.events VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 24, 'evt_jx6wz42f4g2mlrwzen3rsr77eq', 'group.created', 1795599044727002, '{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_h6oze36lmttpzs7clyicvxxoie","client_ip":"127.0.0.1"}', '{"group":{"id":"grp_bqxzmzsh7eeuhrl6fwlkm6yth6","slug":"once","name":"Once","description":"","scopes":[],"member_count":0,"created_at":"2026-11-25T09:30:44.726Z"}}', 11, 3);
INSERT INTO public.factors VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'factor_m7aeptpsmwaal4j4o2s4dkieru', 'totp', 'App', '\x01c2d841fc6cee7596a3f149d71acd67efa26d15a5c3bb03fe753dc4c2896ad3da7f8db5a931351d42bbc11e2a8475250a94b1213ee1548f7722e4f91575e32666', 59853301, 1795599044580362, 0);
INSERT INTO public.federation_connections VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'fed_i2a7fdmcoppiop4zrhb2k7axek', 'google', 'social.google', 'Google', 'enabled', '{"jit_provisioning":true,"link_policy":"verified_email","trust_email":false,"second_factor":"ask","client_id":"stonetown","scopes":["openid","profile","email"]}', '\x01c2d841fceeeede56f30dfe441e74a3cf7dfdf475ab65665087aaf52f87be9a3d3e83a40c', '\x', '{}', '', 4611686018427387903, 0, 1, 1795599044613937, 1795599044613937);
INSERT INTO public.goose_assertions VALUES (1, 0, true, '2026-11-25 09:30:38.952009');
INSERT INTO public.goose_assertions VALUES (2, 1, true, '2026-11-25 09:30:38.984962');
INSERT INTO public.goose_authn VALUES (1, 0, true, '2026-11-25 09:30:39.638081');
INSERT INTO public.goose_authn VALUES (2, 1, true, '2026-11-25 09:30:39.656363');
INSERT INTO public.goose_authn VALUES (3, 2, true, '2026-11-25 09:30:39.658291');
INSERT INTO public.goose_controlplane VALUES (1, 0, true, '2026-11-25 09:30:38.990831');
INSERT INTO public.goose_controlplane VALUES (2, 1, true, '2026-11-25 09:30:39.008315');
INSERT INTO public.goose_controlplane VALUES (3, 2, true, '2026-11-25 09:30:39.023035');
INSERT INTO public.goose_controlplane VALUES (4, 3, true, '2026-11-25 09:30:39.026237');
INSERT INTO public.goose_controlplane VALUES (5, 4, true, '2026-11-25 09:30:39.028226');
INSERT INTO public.goose_controlplane VALUES (6, 5, true, '2026-11-25 09:30:39.028798');
INSERT INTO public.goose_controlplane VALUES (7, 6, true, '2026-11-25 09:30:39.032278');
INSERT INTO public.goose_controlplane VALUES (8, 7, true, '2026-11-25 09:30:39.033881');
INSERT INTO public.goose_controlplane VALUES (9, 8, true, '2026-11-25 09:30:39.034574');
INSERT INTO public.goose_controlplane VALUES (10, 9, true, '2026-11-25 09:30:39.041387');
INSERT INTO public.goose_controlplane VALUES (11, 10, true, '2026-11-25 09:30:39.042509');
INSERT INTO public.goose_controlplane VALUES (12, 11, true, '2026-11-25 09:30:39.042909');
INSERT INTO public.goose_controlplane VALUES (13, 12, true, '2026-11-25 09:30:39.044198');
INSERT INTO public.goose_controlplane VALUES (14, 13, true, '2026-11-25 09:30:39.049025');
INSERT INTO public.goose_controlplane VALUES (15, 14, true, '2026-11-25 09:30:39.049979');
INSERT INTO public.goose_controlplane VALUES (16, 15, true, '2026-11-25 09:30:39.05171');
INSERT INTO public.goose_controlplane VALUES (17, 16, true, '2026-11-25 09:30:39.055684');
INSERT INTO public.goose_controlplane VALUES (18, 17, true, '2026-11-25 09:30:39.057735');
INSERT INTO public.goose_eventlog VALUES (1, 0, true, '2026-11-25 09:30:40.485572');
INSERT INTO public.goose_eventlog VALUES (2, 1, true, '2026-11-25 09:30:40.490365');
INSERT INTO public.goose_eventlog VALUES (3, 2, true, '2026-11-25 09:30:40.493406');
INSERT INTO public.goose_eventlog VALUES (4, 3, true, '2026-11-25 09:30:40.662075');
INSERT INTO public.goose_eventlog VALUES (5, 4, true, '2026-11-25 09:30:40.66464');
INSERT INTO public.goose_eventlog VALUES (6, 5, true, '2026-11-25 09:30:40.704638');
INSERT INTO public.goose_external VALUES (1, 0, true, '2026-11-25 09:30:39.368569');
INSERT INTO public.goose_external VALUES (2, 1, true, '2026-11-25 09:30:39.380872');
INSERT INTO public.goose_external VALUES (3, 2, true, '2026-11-25 09:30:39.384094');
INSERT INTO public.goose_external VALUES (4, 3, true, '2026-11-25 09:30:39.391386');
INSERT INTO public.goose_external VALUES (5, 4, true, '2026-11-25 09:30:39.518993');
INSERT INTO public.goose_external VALUES (6, 5, true, '2026-11-25 09:30:39.523999');
INSERT INTO public.goose_external VALUES (7, 6, true, '2026-11-25 09:30:39.525978');
INSERT INTO public.goose_factor VALUES (1, 0, true, '2026-11-25 09:30:39.303365');
INSERT INTO public.goose_factor VALUES (2, 1, true, '2026-11-25 09:30:39.352866');
INSERT INTO public.goose_factor VALUES (3, 2, true, '2026-11-25 09:30:39.357068');
INSERT INTO public.goose_factor VALUES (4, 3, true, '2026-11-25 09:30:39.36109');
INSERT INTO public.goose_federation VALUES (1, 0, true, '2026-11-25 09:30:39.574386');
INSERT INTO public.goose_federation VALUES (2, 1, true, '2026-11-25 09:30:39.615404');
INSERT INTO public.goose_federation VALUES (3, 2, true, '2026-11-25 09:30:39.62527');
INSERT INTO public.goose_federation VALUES (4, 3, true, '2026-11-25 09:30:39.627507');
INSERT INTO public.goose_federation VALUES (5, 4, true, '2026-11-25 09:30:39.628709');
INSERT INTO public.goose_federation_signin VALUES (1, 0, true, '2026-11-25 09:30:39.630206');
INSERT INTO public.goose_federation_signin VALUES (2, 1, true, '2026-11-25 09:30:39.634257');
INSERT INTO public.goose_federation_signin VALUES (3, 2, true, '2026-11-25 09:30:39.634759');
INSERT INTO public.goose_federation_signin VALUES (4, 3, true, '2026-11-25 09:30:39.635792');
INSERT INTO public.goose_federation_signin VALUES (5, 4, true, '2026-11-25 09:30:39.636252');
INSERT INTO public.goose_idempotency VALUES (1, 0, true, '2026-11-25 09:30:40.769457');
INSERT INTO public.goose_idempotency VALUES (2, 1, true, '2026-11-25 09:30:40.831653');
INSERT INTO public.goose_idempotency VALUES (3, 2, true, '2026-11-25 09:30:40.832629');
INSERT INTO public.goose_identity VALUES (1, 0, true, '2026-11-25 09:30:39.142441');
INSERT INTO public.goose_identity VALUES (2, 1, true, '2026-11-25 09:30:39.147502');
INSERT INTO public.goose_identity VALUES (3, 2, true, '2026-11-25 09:30:39.151759');
INSERT INTO public.goose_identity VALUES (4, 3, true, '2026-11-25 09:30:39.153486');
INSERT INTO public.goose_identity VALUES (5, 4, true, '2026-11-25 09:30:39.155095');
INSERT INTO public.goose_identity VALUES (6, 5, true, '2026-11-25 09:30:39.159702');
INSERT INTO public.goose_identity VALUES (7, 6, true, '2026-11-25 09:30:39.162035');
INSERT INTO public.goose_identity VALUES (8, 7, true, '2026-11-25 09:30:39.166292');
INSERT INTO public.goose_identity VALUES (9, 8, true, '2026-11-25 09:30:39.170828');
INSERT INTO public.goose_identity VALUES (10, 9, true, '2026-11-25 09:30:39.177874');
INSERT INTO public.goose_identity VALUES (11, 10, true, '2026-11-25 09:30:39.182092');
INSERT INTO public.goose_identity VALUES (12, 11, true, '2026-11-25 09:30:39.184576');
INSERT INTO public.goose_identity VALUES (13, 12, true, '2026-11-25 09:30:39.188193');
INSERT INTO public.goose_identity VALUES (14, 13, true, '2026-11-25 09:30:39.191719');
INSERT INTO public.goose_identity VALUES (15, 14, true, '2026-11-25 09:30:39.194835');
INSERT INTO public.goose_identity VALUES (16, 15, true, '2026-11-25 09:30:39.197207');
INSERT INTO public.goose_identity VALUES (17, 16, true, '2026-11-25 09:30:39.199169');
INSERT INTO public.goose_identity VALUES (18, 17, true, '2026-11-25 09:30:39.206999');
INSERT INTO public.goose_identity VALUES (19, 18, true, '2026-11-25 09:30:39.210214');
INSERT INTO public.goose_jobs VALUES (1, 0, true, '2026-11-25 09:30:40.833961');
INSERT INTO public.goose_jobs VALUES (2, 1, true, '2026-11-25 09:30:40.83992');
INSERT INTO public.goose_jobs VALUES (3, 2, true, '2026-11-25 09:30:40.842115');
INSERT INTO public.goose_jobs VALUES (4, 3, true, '2026-11-25 09:30:40.844499');
INSERT INTO public.goose_jobs VALUES (5, 5, true, '2026-11-25 09:30:40.847516');
INSERT INTO public.goose_jobs VALUES (6, 6, true, '2026-11-25 09:30:40.848489');
INSERT INTO public.goose_lock VALUES (4097083626, false, NULL, NULL, NULL, '2026-11-25 09:30:41.00655+00');
INSERT INTO public.goose_management VALUES (1, 0, true, '2026-11-25 09:30:39.070835');
INSERT INTO public.goose_management VALUES (2, 1, true, '2026-11-25 09:30:39.082428');
INSERT INTO public.goose_management VALUES (3, 2, true, '2026-11-25 09:30:39.088012');
INSERT INTO public.goose_management VALUES (4, 3, true, '2026-11-25 09:30:39.089273');
INSERT INTO public.goose_management VALUES (5, 4, true, '2026-11-25 09:30:39.094859');
INSERT INTO public.goose_management VALUES (6, 5, true, '2026-11-25 09:30:39.097596');
INSERT INTO public.goose_management VALUES (7, 6, true, '2026-11-25 09:30:39.098587');
INSERT INTO public.goose_management VALUES (8, 7, true, '2026-11-25 09:30:39.103845');
INSERT INTO public.goose_management VALUES (9, 8, true, '2026-11-25 09:30:39.10496');
INSERT INTO public.goose_management VALUES (10, 9, true, '2026-11-25 09:30:39.106593');
INSERT INTO public.goose_management VALUES (11, 10, true, '2026-11-25 09:30:39.10845');
INSERT INTO public.goose_management VALUES (12, 11, true, '2026-11-25 09:30:39.110189');
INSERT INTO public.goose_masterkey VALUES (1, 0, true, '2026-11-25 09:30:40.948849');
INSERT INTO public.goose_masterkey VALUES (2, 1, true, '2026-11-25 09:30:40.964055');
INSERT INTO public.goose_oauth VALUES (1, 0, true, '2026-11-25 09:30:39.663959');
INSERT INTO public.goose_oauth VALUES (2, 1, true, '2026-11-25 09:30:39.711274');
INSERT INTO public.goose_oauth VALUES (3, 2, true, '2026-11-25 09:30:39.715754');
INSERT INTO public.goose_oauth VALUES (4, 3, true, '2026-11-25 09:30:39.719773');
INSERT INTO public.goose_oauth VALUES (5, 4, true, '2026-11-25 09:30:39.720298');
INSERT INTO public.goose_oauth VALUES (6, 5, true, '2026-11-25 09:30:39.723876');
INSERT INTO public.goose_oauth VALUES (7, 6, true, '2026-11-25 09:30:39.742016');
INSERT INTO public.goose_oauth VALUES (8, 7, true, '2026-11-25 09:30:39.745731');
INSERT INTO public.goose_oauth VALUES (9, 8, true, '2026-11-25 09:30:39.748838');
INSERT INTO public.goose_oauth VALUES (10, 9, true, '2026-11-25 09:30:39.761297');
INSERT INTO public.goose_oauth VALUES (11, 10, true, '2026-11-25 09:30:39.770507');
INSERT INTO public.goose_oauth VALUES (12, 11, true, '2026-11-25 09:30:39.780862');
INSERT INTO public.goose_oauth VALUES (13, 12, true, '2026-11-25 09:30:39.787316');
INSERT INTO public.goose_oauth VALUES (14, 13, true, '2026-11-25 09:30:39.792271');
INSERT INTO public.goose_oauth VALUES (15, 14, true, '2026-11-25 09:30:39.793328');
INSERT INTO public.goose_oauth VALUES (16, 15, true, '2026-11-25 09:30:39.800864');
INSERT INTO public.goose_oauth VALUES (17, 16, true, '2026-11-25 09:30:39.802273');
INSERT INTO public.goose_oauth VALUES (18, 17, true, '2026-11-25 09:30:39.813862');
INSERT INTO public.goose_oauth VALUES (19, 18, true, '2026-11-25 09:30:39.834901');
INSERT INTO public.goose_oauth VALUES (20, 19, true, '2026-11-25 09:30:39.841089');
INSERT INTO public.goose_oauth VALUES (21, 20, true, '2026-11-25 09:30:39.843783');
INSERT INTO public.goose_oauth VALUES (22, 21, true, '2026-11-25 09:30:39.84818');
INSERT INTO public.goose_oauth VALUES (23, 22, true, '2026-11-25 09:30:39.860203');
INSERT INTO public.goose_oauth VALUES (24, 23, true, '2026-11-25 09:30:39.866048');
INSERT INTO public.goose_oauth VALUES (25, 24, true, '2026-11-25 09:30:39.874106');
INSERT INTO public.goose_oauth VALUES (26, 25, true, '2026-11-25 09:30:39.875092');
INSERT INTO public.goose_oauth VALUES (27, 26, true, '2026-11-25 09:30:39.879069');
INSERT INTO public.goose_oauth VALUES (28, 27, true, '2026-11-25 09:30:39.889573');
INSERT INTO public.goose_oauth VALUES (29, 28, true, '2026-11-25 09:30:39.894105');
INSERT INTO public.goose_oauth VALUES (30, 29, true, '2026-11-25 09:30:39.895102');
INSERT INTO public.goose_oauth VALUES (31, 30, true, '2026-11-25 09:30:39.901882');
INSERT INTO public.goose_oauth VALUES (32, 31, true, '2026-11-25 09:30:39.902729');
INSERT INTO public.goose_oauth VALUES (33, 32, true, '2026-11-25 09:30:39.906248');
INSERT INTO public.goose_oauth VALUES (34, 40, true, '2026-11-25 09:30:39.911657');
INSERT INTO public.goose_oauth VALUES (35, 41, true, '2026-11-25 09:30:39.915507');
INSERT INTO public.goose_oauth VALUES (36, 42, true, '2026-11-25 09:30:39.923122');
INSERT INTO public.goose_oauth VALUES (37, 43, true, '2026-11-25 09:30:39.926272');
INSERT INTO public.goose_oauth VALUES (38, 50, true, '2026-11-25 09:30:39.933089');
INSERT INTO public.goose_oauth VALUES (39, 51, true, '2026-11-25 09:30:39.936556');
INSERT INTO public.goose_oauth VALUES (40, 60, true, '2026-11-25 09:30:39.941518');
INSERT INTO public.goose_oauth VALUES (41, 70, true, '2026-11-25 09:30:39.955839');
INSERT INTO public.goose_oauth VALUES (42, 71, true, '2026-11-25 09:30:39.963377');
INSERT INTO public.goose_oauth VALUES (43, 72, true, '2026-11-25 09:30:39.988729');
INSERT INTO public.goose_oauth VALUES (44, 80, true, '2026-11-25 09:30:39.989571');
INSERT INTO public.goose_oauth VALUES (45, 90, true, '2026-11-25 09:30:40.002649');
INSERT INTO public.goose_oauth VALUES (46, 91, true, '2026-11-25 09:30:40.003814');
INSERT INTO public.goose_oauth VALUES (47, 92, true, '2026-11-25 09:30:40.012335');
INSERT INTO public.goose_oauth VALUES (48, 93, true, '2026-11-25 09:30:40.01307');
INSERT INTO public.goose_oauth VALUES (49, 94, true, '2026-11-25 09:30:40.016323');
INSERT INTO public.goose_oauth VALUES (50, 100, true, '2026-11-25 09:30:40.045293');
INSERT INTO public.goose_oauth VALUES (51, 101, true, '2026-11-25 09:30:40.046689');
INSERT INTO public.goose_oauth VALUES (52, 102, true, '2026-11-25 09:30:40.047283');
INSERT INTO public.goose_oauth VALUES (53, 103, true, '2026-11-25 09:30:40.051301');
INSERT INTO public.goose_oauth VALUES (54, 104, true, '2026-11-25 09:30:40.057035');
INSERT INTO public.goose_oauth VALUES (55, 105, true, '2026-11-25 09:30:40.062504');
INSERT INTO public.goose_oauth VALUES (56, 106, true, '2026-11-25 09:30:40.069411');
INSERT INTO public.goose_oauth VALUES (57, 107, true, '2026-11-25 09:30:40.072011');
INSERT INTO public.goose_oauth VALUES (58, 108, true, '2026-11-25 09:30:40.075349');
INSERT INTO public.goose_oauth VALUES (59, 109, true, '2026-11-25 09:30:40.078918');
INSERT INTO public.goose_oauth VALUES (60, 110, true, '2026-11-25 09:30:40.089477');
INSERT INTO public.goose_oauth VALUES (61, 111, true, '2026-11-25 09:30:40.096506');
INSERT INTO public.goose_oauth VALUES (62, 112, true, '2026-11-25 09:30:40.114211');
INSERT INTO public.goose_oauth VALUES (63, 130, true, '2026-11-25 09:30:40.477045');
INSERT INTO public.goose_oauth VALUES (64, 131, true, '2026-11-25 09:30:40.477869');
INSERT INTO public.goose_oauth VALUES (65, 132, true, '2026-11-25 09:30:40.4783');
INSERT INTO public.goose_oauth VALUES (66, 133, true, '2026-11-25 09:30:40.480582');
INSERT INTO public.goose_onetime VALUES (1, 0, true, '2026-11-25 09:30:39.260337');
INSERT INTO public.goose_onetime VALUES (2, 1, true, '2026-11-25 09:30:39.284321');
INSERT INTO public.goose_onetime VALUES (3, 2, true, '2026-11-25 09:30:39.293205');
INSERT INTO public.goose_onetime VALUES (4, 3, true, '2026-11-25 09:30:39.29695');
INSERT INTO public.goose_ratelimit VALUES (1, 0, true, '2026-11-25 09:30:40.852483');
INSERT INTO public.goose_ratelimit VALUES (2, 1, true, '2026-11-25 09:30:40.863397');
INSERT INTO public.goose_ratelimit VALUES (3, 2, true, '2026-11-25 09:30:40.867584');
INSERT INTO public.goose_resources VALUES (1, 0, true, '2026-11-25 09:30:38.892509');
INSERT INTO public.goose_resources VALUES (2, 1, true, '2026-11-25 09:30:38.944197');
INSERT INTO public.goose_samlkeys VALUES (1, 0, true, '2026-11-25 09:30:40.868724');
INSERT INTO public.goose_samlkeys VALUES (2, 1, true, '2026-11-25 09:30:40.928846');
INSERT INTO public.goose_samlkeys VALUES (3, 2, true, '2026-11-25 09:30:40.932442');
INSERT INTO public.goose_samlkeys VALUES (4, 3, true, '2026-11-25 09:30:40.933152');
INSERT INTO public.goose_samlkeys VALUES (5, 4, true, '2026-11-25 09:30:40.933641');
INSERT INTO public.goose_session VALUES (1, 0, true, '2026-11-25 09:30:39.214331');
INSERT INTO public.goose_session VALUES (2, 1, true, '2026-11-25 09:30:39.234851');
INSERT INTO public.goose_session VALUES (3, 2, true, '2026-11-25 09:30:39.240501');
INSERT INTO public.goose_session VALUES (4, 3, true, '2026-11-25 09:30:39.247953');
INSERT INTO public.goose_session VALUES (5, 4, true, '2026-11-25 09:30:39.254188');
INSERT INTO public.goose_session VALUES (6, 5, true, '2026-11-25 09:30:39.25641');
INSERT INTO public.goose_tenantkeys VALUES (1, 0, true, '2026-11-25 09:30:40.937214');
INSERT INTO public.goose_tenantkeys VALUES (2, 1, true, '2026-11-25 09:30:40.946509');
INSERT INTO public.goose_tuplestore VALUES (1, 0, true, '2026-11-25 09:30:38.71385');
INSERT INTO public.goose_tuplestore VALUES (2, 1, true, '2026-11-25 09:30:38.756471');
INSERT INTO public.goose_tuplestore VALUES (3, 2, true, '2026-11-25 09:30:38.758281');
INSERT INTO public.goose_tuplestore VALUES (4, 3, true, '2026-11-25 09:30:38.762082');
INSERT INTO public.goose_tuplestore VALUES (5, 4, true, '2026-11-25 09:30:38.768704');
INSERT INTO public.goose_tuplestore VALUES (6, 5, true, '2026-11-25 09:30:38.776855');
INSERT INTO public.goose_tuplestore VALUES (7, 6, true, '2026-11-25 09:30:38.779898');
INSERT INTO public.goose_tuplestore VALUES (8, 7, true, '2026-11-25 09:30:38.784505');
INSERT INTO public.goose_tuplestore VALUES (9, 8, true, '2026-11-25 09:30:38.78542');
INSERT INTO public.goose_tuplestore VALUES (10, 9, true, '2026-11-25 09:30:38.800888');
INSERT INTO public.goose_tuplestore VALUES (11, 10, true, '2026-11-25 09:30:38.802067');
INSERT INTO public.goose_tuplestore VALUES (12, 11, true, '2026-11-25 09:30:38.802959');
INSERT INTO public.goose_tuplestore VALUES (13, 12, true, '2026-11-25 09:30:38.803613');
INSERT INTO public.goose_tuplestore VALUES (14, 13, true, '2026-11-25 09:30:38.804256');
INSERT INTO public.goose_tuplestore VALUES (15, 14, true, '2026-11-25 09:30:38.807766');
INSERT INTO public.goose_tuplestore VALUES (16, 15, true, '2026-11-25 09:30:38.808346');
INSERT INTO public.goose_tuplestore VALUES (17, 16, true, '2026-11-25 09:30:38.81344');
INSERT INTO public.goose_tuplestore VALUES (18, 17, true, '2026-11-25 09:30:38.816819');
INSERT INTO public.goose_tuplestore VALUES (19, 18, true, '2026-11-25 09:30:38.817819');
INSERT INTO public.goose_tuplestore VALUES (20, 19, true, '2026-11-25 09:30:38.819371');
INSERT INTO public.goose_tuplestore VALUES (21, 20, true, '2026-11-25 09:30:38.824829');
INSERT INTO public.goose_tuplestore VALUES (22, 21, true, '2026-11-25 09:30:38.826062');
INSERT INTO public.goose_webhooks VALUES (1, 0, true, '2026-11-25 09:30:40.966657');
INSERT INTO public.goose_webhooks VALUES (2, 1, true, '2026-11-25 09:30:40.978238');
INSERT INTO public.goose_webhooks VALUES (3, 2, true, '2026-11-25 09:30:40.982769');
INSERT INTO public.goose_webhooks VALUES (4, 3, true, '2026-11-25 09:30:40.986415');
INSERT INTO public.goose_webhooks VALUES (5, 4, true, '2026-11-25 09:30:40.99014');
INSERT INTO public.goose_webhooks VALUES (6, 5, true, '2026-11-25 09:30:40.992959');
INSERT INTO public.goose_webhooks VALUES (7, 6, true, '2026-11-25 09:30:40.994491');
INSERT INTO public.goose_webhooks VALUES (8, 7, true, '2026-11-25 09:30:40.996815');
INSERT INTO public.goose_webhooks VALUES (9, 8, true, '2026-11-25 09:30:40.999964');
INSERT INTO public.goose_webhooks VALUES (10, 9, true, '2026-11-25 09:30:41.004833');
INSERT INTO public.goose_webhooks VALUES (11, 10, true, '2026-11-25 09:30:41.005446');
INSERT INTO public.goose_webhooks VALUES (12, 11, true, '2026-11-25 09:30:41.005921');
INSERT INTO public.grants VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'gnt_7pgq6hjxudj3e4huqyzh2w353t', 'client_tytzaederfg4zz44fggub7pw72', 'usr_3wm5x6c7qtje6d2pejm3wtni24', 'ses_77seg3tsgiynvv47cg624u5fax', 'openid offline_access', '', '', 'pwd', 1795599043965076, 0, 1795599044110174, 1803375044110174, 0, '', '', '');
INSERT INTO public.idempotency_keys VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', '\x9c18f833d54ce69504710efa9a86167d2d28d25dedfacc04254de2b0b85c8958', '\x8e6ede3158071ab61de8cc70005ee06920ba5506f6a86270ca6435dfeab9c514', 'RYH4NCT7TGAVYAFO5OVTFT64BZ', 'HYQKTQ4GD2ZK5YD54VRM7ZUDB3', 1795599089725745, 201, '\x01c2d841fca65abb30a6987bfe703c055b5b46b837e4b0055fbc704b4ef3c6a68420719f2615f066e7773744a8986d014e14b3e34bf1f5308574d14dbb6e445b775dbd9d00e906212fb272e3a2f909a8ac80b209c41bdda1fc14f8f6d6ffb6d41c4d061583de7ffe95c5f0bf1ae35df8e2bd88349aeabfe45a20cfe94227f2447b3170dc112a36ccac36ce33bab1abdd30bf211200ef75f4c2a6815a944b7051ca62e48cb30a22f2843a7d7f41b5fd94aec3b15c8a3c58ce8ac66c279947c8b30704b35889b4dd91c0c2f0d1256cdd8d655f88b75844ad3caf6ec7d19cd23bf84a4b8ee7518f26db650407d64266d8aed7edf647ef9d60f730284d81214073b158b0ed7d94e24b8871310cf229bce791c36571b73cfd73f80dbae188bb243a7714b1b220c2977363d92fbdc1dbe1ebd5c46cf89911aff4bb2ec0fd680e7918bbdfa199a4b8d2904686a3ef22839400484386a4fb4c76f6271a19f70272aa888597b0eb2d072f3b12718cf5a8079d51ac3d05203c24162f669e95700d5ecdd3131e5e174822ff5218e5467b732961e185229146d8a053781d56bfebdd357f73acf1bc1d1961a95b7f173f2136c182bde6a501d8917639b7452349c65431c697ab3461a1d87636bb407ffad883e78f1f161355ab61e807ce4542974ad2cbc5770e34df2416563ab96967e189d369bf8e4fe06e4636632b8c4dfa8df2af1e34181753d3f00f938193375cd889d0ca776c57bec42b110cdf6e9cf2d3c5088f461200e78f84a391246d51c6bb78d54dd8e8a942cd2417595762d2906254951b41ac4695cc965e0c', 12, 1795685444725745);
INSERT INTO public.known_devices VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_3wm5x6c7qtje6d2pejm3wtni24', 'd98a7109cd1f411f', 1795599043979112);
INSERT INTO public.known_devices VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'd98a7109cd1f411f', 1795599044566448);
INSERT INTO public.master_keys VALUES ('c2d841fc', 1, '\x01c2d841fc81cbb3dc8bc8c2651f22c55cb4fb1352d04aacdd0cd69afc638b378e090b8dcf666c0867b243f187fc77ec45dfe45f070178b4ed05ae2d34be488285', 1795599041006801, 0);
INSERT INTO public.oauth_settings VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', '{"dcr_mode":"open","dcr_require_pkce":true,"client_id_documents":"off","require_state":true,"refresh_reuse_leeway_s":0,"refresh_family_max_s":7776000,"previous_secret_ttl_s":259200,"client_assertion_max_s":3600,"token_defaults":{"access_token_ttl_s":3600,"refresh_token_ttl_s":2592000}}');
INSERT INTO public.organization_members VALUES ('org_6qzkk5ufdopoftpp3jrk6sslyq', 'mem_irqmmd6so6wrceuoai375sxubf', 'usr_eaxmihapr3flmf6gkoir2zwtkr', '', 1795599042306094);
INSERT INTO public.organizations VALUES ('org_6qzkk5ufdopoftpp3jrk6sslyq', 'dev', 'dev', 1795599041865629, 1795599041865629);
INSERT INTO public.rate_limits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'token.caller|600/h|client_ny6smcwxcd4cbxtiuoathkklbl', 1795599048492443000, 9, 1795599048492567);
INSERT INTO public.rate_limits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'token.ip|60/min|127.0.0.1', 1795599046091686000, 3, 1795599046091975);
INSERT INTO public.rate_limits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'token.caller|600/h|usr_3wm5x6c7qtje6d2pejm3wtni24', 1795599050306034000, 14, 1795599050308033);
INSERT INTO public.rate_limits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'sign-in.ip|30/min|127.0.0.1', 1795599047448881000, 8, 1795599047449112);
INSERT INTO public.rate_limits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'self-service.caller|600/h|usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 1795599062568968000, 0, 1795599062569215);
INSERT INTO public.rate_limits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'admin.caller|6000/h|client_ny6smcwxcd4cbxtiuoathkklbl', 1795599059912405000, 5, 1795599059912517);
INSERT INTO public.refresh_tokens VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', '-0VgqB9wbkDTUiSSlNn5JhIOiGyHrjBBraHuY16sgwQ', 'gnt_7pgq6hjxudj3e4huqyzh2w353t', 'client_tytzaederfg4zz44fggub7pw72', 1795599044308746, 1798191044308746, 0, '', '', '');
INSERT INTO public.relation_tuple_history VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'folder', '2026', 'viewer', 'user', 'gone', '', '', '', 0, 5, 1795599043006061, 'client_ny6smcwxcd4cbxtiuoathkklbl', 6);
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', 'user', 'usr_lffqh7l2bv2uyiz7ueug3lz6u3', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'applications:read', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'applications:read', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'applications:write', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'applications:write', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'audit:read', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'audit:read', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'federation:read', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'federation:read', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'federation:write', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'federation:write', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'groups:read', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'groups:read', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'groups:write', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'groups:write', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'me:read', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'me:read', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'me:write', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'me:write', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'resources:read', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'resources:read', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'resources:write', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'resources:write', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'scim:write', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'scim:write', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'settings:read', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'settings:read', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'settings:write', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'settings:write', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'users:read', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'users:read', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'users:write', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'users:write', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'webhooks:read', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'webhooks:read', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'webhooks:write', '', '', '', '', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'webhooks:write', 'holder', 'group', 'grp_q65qqezu44obzpkeatf32wiklb', 'member', '', '', 0, 1, 1795599041915721, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'applications:read', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'applications:write', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'audit:read', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'federation:read', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'federation:write', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'groups:read', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'groups:write', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'resources:read', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'resources:write', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'scim:write', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'settings:read', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'settings:write', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'users:read', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'users:write', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'webhooks:read', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'webhooks:write', 'holder', 'application', 'client_ny6smcwxcd4cbxtiuoathkklbl', '', '', '', 0, 2, 1795599041922389, '');
INSERT INTO public.relation_tuples VALUES ('tnt_system', 'organization', 'org_6qzkk5ufdopoftpp3jrk6sslyq', '', '', '', '', '', '', 0, 3, 1795599042430712, '');
INSERT INTO public.relation_tuples VALUES ('tnt_system', 'organization', 'org_6qzkk5ufdopoftpp3jrk6sslyq', 'owner', 'user', 'usr_eaxmihapr3flmf6gkoir2zwtkr', '', '', '', 0, 3, 1795599042430712, '');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'document', 'plans/q1 draft', '', '', '', '', '', '', 0, 4, 1795599042934722, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'document', 'plans/q1 draft', 'banned', 'user', 'eve', '', '', '', 0, 5, 1795599043006061, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'document', 'plans/q1 draft', 'parent', 'folder', '2026', '', '', '', 0, 5, 1795599043006061, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'document', 'plans/q1 draft', 'viewer', 'user', 'eve', '', '', '', 0, 5, 1795599043006061, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'folder', '2026', '', '', '', '', '', '', 0, 5, 1795599043006061, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'folder', '2026', 'owner', 'user', 'ann', '', '', '', 0, 5, 1795599043006061, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'folder', '2026', 'viewer', 'user', 'cid', '', 'from_office', '{"office":"192.0.2.0/24"}', 3818447999000000, 5, 1795599043006061, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'group', 'grp_2qpuh6vegn2kicjy77bbyz6onv', '', '', '', '', '', '', 0, 7, 1795599044602502, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'notes:read', '', '', '', '', '', '', 0, 7, 1795599044602502, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'scope', 'notes:read', 'holder', 'group', 'grp_2qpuh6vegn2kicjy77bbyz6onv', 'member', '', '', 0, 7, 1795599044602502, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'group', 'grp_2qpuh6vegn2kicjy77bbyz6onv', 'member', 'user', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', '', '', '', 0, 8, 1795599044608186, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'folder', '2026', 'viewer', 'group', 'grp_2qpuh6vegn2kicjy77bbyz6onv', 'member', '', '', 0, 9, 1795599044612929, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'group', 'grp_upqwtd62hjlhstcoabnxloofgi', '', '', '', '', '', '', 0, 10, 1795599044640729, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'group', 'grp_bqxzmzsh7eeuhrl6fwlkm6yth6', '', '', '', '', '', '', 0, 11, 1795599044726939, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.relation_tuples VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'document', 'plans/q1 draft', 'viewer', 'user', 'late', '', '', '', 0, 12, 1795599044740195, 'client_ny6smcwxcd4cbxtiuoathkklbl');
INSERT INTO public.resource_attributes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'document', 'plans/q1 draft', '{"pages":3}', 1795599042918629);
INSERT INTO public.scopes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'notes:read', 'Read notes', 'group', 1795599044599862);
INSERT INTO public.sessions VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'ses_77seg3tsgiynvv47cg624u5fax', 'usr_3wm5x6c7qtje6d2pejm3wtni24', '\x7b5b1ae2e9a2216f0dd26505cf6f00e93220396b5eaa1bfd3719dc6a3e7e9208', 'pwd', 1795599043965076, 0, false, 1795599043965076, 1795599043965076, 1798191043965076, 86400000000, '127.0.0.1', 'Go-http-client/1.1');
INSERT INTO public.sessions VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'ses_3uxdkfshadowfqk3wkupqdzh5k', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', '\xaf21a16600c7cc7e194bd8f8215c7925cd2439c15080e7ca087f8e94feabc84b', 'pwd otp mfa', 1795599044582343, 1795599044582343, false, 1795599044565641, 1795599044565641, 1798191044565641, 86400000000, '127.0.0.1', 'Go-http-client/1.1');
INSERT INTO public.signing_keys VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'OF9WH0tMQmVe8j2vS0EHmg1t73qPkFxvN1faHFeEzQk', 'ES256', 'active', '\x01c2d841fc8353038e33308d47f376a7ab2adb7c3b24518ab272da43bd35852284a5327e0b9dc67bd42a4ceb0631849dc990e01070f9ffbb3227e5705d806d5797b20325c6671a9092340c374cc74ee2ca49947c8eeb61b30e89ef669a84f7304161519e1ee71cd04d137f90ef19106cc5ae6f27bb5c9c3d6871a21efaf740bb2a4a626e43d32c760e2c820de5286da79ec1f460f3bf2e28bc8427e7baeabb092958064757c7a94a4799f2', 1795599041901796, 1795599041901796, 0, 0, 1803288581901796);
INSERT INTO public.tenant_commits VALUES ('tnt_system', 1, '', 1795599041044928, '[]', '', 0);
INSERT INTO public.tenant_commits VALUES ('tnt_system', 2, '', 1795599041056582, '[]', '', 0);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 1, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3', 1795599041915721, '[["scope","applications:read","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","applications:write","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","audit:read","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","federation:read","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","federation:write","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","groups:read","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","groups:write","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","me:read","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","me:write","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","resources:read","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","resources:write","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","scim:write","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","settings:read","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","settings:write","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","users:read","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","users:write","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","webhooks:read","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["scope","webhooks:write","holder","group","grp_q65qqezu44obzpkeatf32wiklb","member"],["group","grp_q65qqezu44obzpkeatf32wiklb","member","user","usr_lffqh7l2bv2uyiz7ueug3lz6u3",""],["group","grp_q65qqezu44obzpkeatf32wiklb","","","",""],["scope","applications:read","","","",""],["scope","applications:write","","","",""],["scope","audit:read","","","",""],["scope","federation:read","","","",""],["scope","federation:write","","","",""],["scope","groups:read","","","",""],["scope","groups:write","","","",""],["scope","me:read","","","",""],["scope","me:write","","","",""],["scope","resources:read","","","",""],["scope","resources:write","","","",""],["scope","scim:write","","","",""],["scope","settings:read","","","",""],["scope","settings:write","","","",""],["scope","users:read","","","",""],["scope","users:write","","","",""],["scope","webhooks:read","","","",""],["scope","webhooks:write","","","",""]]', '', 0);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 2, '', 1795599041922389, '[["scope","users:read","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","users:write","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","groups:read","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","groups:write","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","applications:read","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","applications:write","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","federation:read","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","federation:write","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","resources:read","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","resources:write","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","webhooks:read","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","webhooks:write","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","settings:read","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","settings:write","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","scim:write","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""],["scope","audit:read","holder","application","client_ny6smcwxcd4cbxtiuoathkklbl",""]]', '', 0);
INSERT INTO public.tenant_commits VALUES ('tnt_system', 3, '', 1795599042430712, '[["organization","org_6qzkk5ufdopoftpp3jrk6sslyq","owner","user","usr_eaxmihapr3flmf6gkoir2zwtkr",""],["organization","org_6qzkk5ufdopoftpp3jrk6sslyq","","","",""]]', '', 0);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 3, 'client_ny6smcwxcd4cbxtiuoathkklbl', 1795599042911167, '[]', '', 0);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 4, 'client_ny6smcwxcd4cbxtiuoathkklbl', 1795599042934722, '[["document","plans/q1 draft","","","",""]]', '', 0);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 5, 'client_ny6smcwxcd4cbxtiuoathkklbl', 1795599043006061, '[["folder","2026","owner","user","ann",""],["folder","2026","viewer","user","gone",""],["folder","2026","viewer","user","cid","",3818447999000000,"from_office","{\"office\":\"192.0.2.0/24\"}"],["document","plans/q1 draft","parent","folder","2026",""],["document","plans/q1 draft","viewer","user","eve",""],["document","plans/q1 draft","banned","user","eve",""],["folder","2026","","","",""]]', '["evt_2s54ze3xmjrr6ya6nthq5qnn5v","relation.bulk_applied",{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_4edjyihzyeqjpc6fptytrdtptv","client_ip":"127.0.0.1"},{"created":6,"updated":0,"deleted":0,"operations":[{"op":"create","result":"created","relation":"owner","resource":{"external_id":"2026","type":"folder"},"subject":{"id":"ann","type":"user"}},{"op":"create","result":"created","relation":"viewer","resource":{"external_id":"2026","type":"folder"},"subject":{"id":"gone","type":"user"}},{"op":"create","result":"created","condition":{"context":{"office":"192.0.2.0/24"},"name":"from_office"},"expires_at":"2090-12-31T23:59:59.000Z","relation":"viewer","resource":{"external_id":"2026","type":"folder"},"subject":{"id":"cid","type":"user"}},{"op":"create","result":"created","relation":"parent","resource":{"external_id":"plans/q1 draft","type":"document"},"subject":{"id":"2026","type":"folder"}},{"op":"create","result":"created","relation":"viewer","resource":{"external_id":"plans/q1 draft","type":"document"},"subject":{"id":"eve","type":"user"}},{"op":"create","result":"created","relation":"banned","resource":{"external_id":"plans/q1 draft","type":"document"},"subject":{"id":"eve","type":"user"}}]}]', 1);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 6, 'client_ny6smcwxcd4cbxtiuoathkklbl', 1795599043008048, '[["folder","2026","viewer","user","gone","","-"]]', '["evt_xpb6vdl76dbsnfviecko56a6fa","relation.deleted",{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_gwop2c3vxh2ipldi7lf6njawss","client_ip":"127.0.0.1"},{"relation":{"relation":"viewer","resource":{"external_id":"2026","type":"folder"},"subject":{"id":"gone","type":"user"}}}]', 2);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 7, 'client_ny6smcwxcd4cbxtiuoathkklbl', 1795599044602502, '[["scope","notes:read","holder","group","grp_2qpuh6vegn2kicjy77bbyz6onv","member"],["group","grp_2qpuh6vegn2kicjy77bbyz6onv","","","",""],["scope","notes:read","","","",""]]', '', 2);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 8, 'client_ny6smcwxcd4cbxtiuoathkklbl', 1795599044608186, '[["group","grp_2qpuh6vegn2kicjy77bbyz6onv","member","user","usr_qrjizdvyfd2jfqwkgpsfhxuzm6",""]]', '', 2);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 9, 'client_ny6smcwxcd4cbxtiuoathkklbl', 1795599044612929, '[["folder","2026","viewer","group","grp_2qpuh6vegn2kicjy77bbyz6onv","member"]]', '["evt_opahunv47gjeqhialo2wlner4r","relation.created",{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_l4k52zjoydqeovamazo4q7npbi","client_ip":"127.0.0.1"},{"relation":{"relation":"viewer","resource":{"external_id":"2026","type":"folder"},"subject":{"id":"grp_2qpuh6vegn2kicjy77bbyz6onv","type":"group"}}}]', 3);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 10, 'client_ny6smcwxcd4cbxtiuoathkklbl', 1795599044640729, '[["group","grp_upqwtd62hjlhstcoabnxloofgi","","","",""]]', '', 3);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 11, 'client_ny6smcwxcd4cbxtiuoathkklbl', 1795599044726939, '[["group","grp_bqxzmzsh7eeuhrl6fwlkm6yth6","","","",""]]', '', 3);
INSERT INTO public.tenant_commits VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 12, 'client_ny6smcwxcd4cbxtiuoathkklbl', 1795599044740195, '[["document","plans/q1 draft","viewer","user","late",""]]', '["evt_55ng4kut7yakbqccr5wxmzv5ck","relation.created",{"actor":{"type":"application","id":"client_ny6smcwxcd4cbxtiuoathkklbl"},"client_id":"client_ny6smcwxcd4cbxtiuoathkklbl","request_id":"req_2iorff6zmy2bg56dsqzl3xxhml","client_ip":"127.0.0.1"},{"relation":{"relation":"viewer","resource":{"external_id":"plans/q1 draft","type":"document"},"subject":{"id":"late","type":"user"}}}]', 4);
INSERT INTO public.tenant_heads VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'HRZL7TRFZOVE5FEJ7XWS6CH5A7', 12, 3, 0, 4, 0, 1795599044740195);
INSERT INTO public.tenant_heads VALUES ('tnt_system', 'WCEOJER457QGJUOWA6WDXGCASK', 3, 2, 0, 0, 0, 1795599042430712);
INSERT INTO public.tenant_receipts VALUES ('tnt_system', 'EM6I5K2KGSCX6SEU43T3YRWP3A', '\x', 1, '', 1795599041044928);
INSERT INTO public.tenant_receipts VALUES ('tnt_system', 'DJVUH7CVWFTKXU6DYHMDKBP6DG', '\x', 2, '', 1795599041056582);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'NJIFIQEKTX4NLKHFEHRL6K2JGO', '\x', 1, 'cccccccccccccccccccccccccccccccccccccce', 1795599041915721);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'OTHCGR4HSJBFCTUEQK44FJNDLA', '\x', 2, 'cccccccccccccccceeeeeeeeeeeeeeee', 1795599041922389);
INSERT INTO public.tenant_receipts VALUES ('tnt_system', 'TPMABLEMD4RUJ43FSVOSYOVMGR', '\x', 3, 'cc', 1795599042430712);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', '45XHOWDQ6RY25HDBG6BDQ5ONBD', '\x', 3, '', 1795599042911167);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'S2SKCXY2SKICY3OY4S3FFJMQRX', '\x', 4, 'c', 1795599042934722);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', '5GYY5MX7E5AC65DSLWNQFE7NYF', '\x', 5, 'ccccccce', 1795599043006061);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', '3GFRKHYC7K5RAXBDPQMATVE3HL', '\x', 6, 'd', 1795599043008048);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', '34DWAA4P5MH77UCRVY54IQ4PLZ', '\x', 7, 'ccc', 1795599044602502);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'J6EHNAFIA2MOHA4EEKRS5GKX6E', '\x', 8, 'ce', 1795599044608186);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', '5B4H3REEFIAN3HM36C6OG74EL6', '\x', 9, 'ce', 1795599044612929);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'NKL5JUV5AFV3KLQ5OOT3E5J6H4', '\x', 10, 'c', 1795599044640729);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'RYH4NCT7TGAVYAFO5OVTFT64BZ', '\x8816633ed6a36df743c02b4c18985ba0d1ed88d9031310a66d585c55314494a9', 11, 'c', 1795599044726939);
INSERT INTO public.tenant_receipts VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', '5WERXZNFURC36FMAN3K76IJ3Q7', '\x', 12, 'ce', 1795599044740195);
INSERT INTO public.tenant_schemas VALUES ('tnt_system', 1, '\x7b227479706573223a5b7b226e616d65223a226f7267616e697a6174696f6e222c226465736372697074696f6e223a224f776e732074656e616e74732e222c2272656c6174696f6e73223a5b7b226e616d65223a226f776e6572222c227375626a65637473223a5b2275736572222c226170706c69636174696f6e225d7d2c7b226e616d65223a2261646d696e222c227375626a65637473223a5b2275736572222c226170706c69636174696f6e225d7d2c7b226e616d65223a226f70657261746f72222c227375626a65637473223a5b2275736572222c226170706c69636174696f6e225d7d2c7b226e616d65223a22766965776572222c227375626a65637473223a5b2275736572222c226170706c69636174696f6e225d7d2c7b226e616d65223a2272656164222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2261646d696e227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f70657261746f72227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a22766965776572227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a226372656174655f74656e616e74222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2261646d696e227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a227570646174655f74656e616e74222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2261646d696e227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a2273757370656e645f74656e616e74222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2261646d696e227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f70657261746f72227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a226465636f6d6d697373696f6e5f74656e616e74222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a226d616e6167655f6d656d62657273222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2261646d696e227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a226d616e6167655f6f776e657273222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a227570646174655f6f7267616e697a6174696f6e222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d5d2c227375626a65637473223a6e756c6c7d5d2c22616374696f6e73223a7b226372656174655f74656e616e74223a226372656174655f74656e616e74222c226465636f6d6d697373696f6e5f74656e616e74223a226465636f6d6d697373696f6e5f74656e616e74222c226d616e6167655f6d656d62657273223a226d616e6167655f6d656d62657273222c226d616e6167655f6f776e657273223a226d616e6167655f6f776e657273222c2272656164223a2272656164222c2273757370656e645f74656e616e74223a2273757370656e645f74656e616e74222c227570646174655f6f7267616e697a6174696f6e223a227570646174655f6f7267616e697a6174696f6e222c227570646174655f74656e616e74223a227570646174655f74656e616e74227d2c22637265617465645f6174223a22323032362d31312d32355430393a33303a34312e3033395a222c22757064617465645f6174223a22323032362d31312d32355430393a33303a34312e3033395a227d5d7d');
INSERT INTO public.tenant_schemas VALUES ('tnt_system', 2, '\x7b227479706573223a5b7b226e616d65223a226f7267616e697a6174696f6e222c226465736372697074696f6e223a224f776e732074656e616e74732e222c2272656c6174696f6e73223a5b7b226e616d65223a226f776e6572222c227375626a65637473223a5b2275736572222c226170706c69636174696f6e225d7d2c7b226e616d65223a2261646d696e222c227375626a65637473223a5b2275736572222c226170706c69636174696f6e225d7d2c7b226e616d65223a226f70657261746f72222c227375626a65637473223a5b2275736572222c226170706c69636174696f6e225d7d2c7b226e616d65223a22766965776572222c227375626a65637473223a5b2275736572222c226170706c69636174696f6e225d7d2c7b226e616d65223a2272656164222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2261646d696e227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f70657261746f72227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a22766965776572227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a226372656174655f74656e616e74222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2261646d696e227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a227570646174655f74656e616e74222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2261646d696e227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a2273757370656e645f74656e616e74222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2261646d696e227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f70657261746f72227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a226465636f6d6d697373696f6e5f74656e616e74222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a226d616e6167655f6d656d62657273222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2261646d696e227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a226d616e6167655f6f776e657273222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a227570646174655f6f7267616e697a6174696f6e222c227265777269746573223a5b7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d5d2c227375626a65637473223a6e756c6c7d5d2c22616374696f6e73223a7b226372656174655f74656e616e74223a226372656174655f74656e616e74222c226465636f6d6d697373696f6e5f74656e616e74223a226465636f6d6d697373696f6e5f74656e616e74222c226d616e6167655f6d656d62657273223a226d616e6167655f6d656d62657273222c226d616e6167655f6f776e657273223a226d616e6167655f6f776e657273222c2272656164223a2272656164222c2273757370656e645f74656e616e74223a2273757370656e645f74656e616e74222c227570646174655f6f7267616e697a6174696f6e223a227570646174655f6f7267616e697a6174696f6e222c227570646174655f74656e616e74223a227570646174655f74656e616e74227d2c22637265617465645f6174223a22323032362d31312d32355430393a33303a34312e3033395a222c22757064617465645f6174223a22323032362d31312d32355430393a33303a34312e3033395a227d2c7b226e616d65223a2274656e616e74222c226465736372697074696f6e223a22412074656e616e74206f6620616e206f7267616e69736174696f6e2e222c2272656c6174696f6e73223a5b7b226e616d65223a22706172656e74222c227375626a65637473223a5b226f7267616e697a6174696f6e225d7d2c7b226e616d65223a2272656164222c227265777269746573223a5b7b226b696e64223a227475706c655f746f5f75736572736574222c227475706c65736574223a22706172656e74222c22636f6d7075746564223a2272656164227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a227570646174655f74656e616e74222c227265777269746573223a5b7b226b696e64223a227475706c655f746f5f75736572736574222c227475706c65736574223a22706172656e74222c22636f6d7075746564223a227570646174655f74656e616e74227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a2273757370656e645f74656e616e74222c227265777269746573223a5b7b226b696e64223a227475706c655f746f5f75736572736574222c227475706c65736574223a22706172656e74222c22636f6d7075746564223a2273757370656e645f74656e616e74227d5d2c227375626a65637473223a6e756c6c7d2c7b226e616d65223a226465636f6d6d697373696f6e5f74656e616e74222c227265777269746573223a5b7b226b696e64223a227475706c655f746f5f75736572736574222c227475706c65736574223a22706172656e74222c22636f6d7075746564223a226465636f6d6d697373696f6e5f74656e616e74227d5d2c227375626a65637473223a6e756c6c7d5d2c22616374696f6e73223a7b226465636f6d6d697373696f6e5f74656e616e74223a226465636f6d6d697373696f6e5f74656e616e74222c2272656164223a2272656164222c2273757370656e645f74656e616e74223a2273757370656e645f74656e616e74222c227570646174655f74656e616e74223a227570646174655f74656e616e74227d2c22637265617465645f6174223a22323032362d31312d32355430393a33303a34312e3035335a222c22757064617465645f6174223a22323032362d31312d32355430393a33303a34312e3035335a227d5d7d');
INSERT INTO public.tenant_schemas VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 3, '\x7b227479706573223a5b7b226e616d65223a22666f6c646572222c2272656c6174696f6e73223a5b7b226e616d65223a226f776e6572222c227375626a65637473223a6e756c6c7d2c7b226e616d65223a22766965776572222c227265777269746573223a5b7b226b696e64223a2274686973227d2c7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a226f776e6572227d5d2c227375626a65637473223a6e756c6c7d5d2c22636f6e646974696f6e73223a5b7b226e616d65223a2266726f6d5f6f6666696365222c2265787072657373696f6e223a22616464726573732e696e5f63696472286f666669636529222c22706172616d6574657273223a5b7b226e616d65223a2261646472657373222c2274797065223a22697061646472657373227d2c7b226e616d65223a226f6666696365222c2274797065223a22737472696e67227d5d7d5d2c22637265617465645f6174223a22323032362d31312d32355430393a33303a34322e3635365a222c22757064617465645f6174223a22323032362d31312d32355430393a33303a34322e3635365a227d2c7b226e616d65223a22646f63756d656e74222c2272656c6174696f6e73223a5b7b226e616d65223a22706172656e74222c227375626a65637473223a5b22666f6c646572225d7d2c7b226e616d65223a2262616e6e6564222c227375626a65637473223a6e756c6c7d2c7b226e616d65223a22766965776572222c227265777269746573223a5b7b226b696e64223a226578636c7573696f6e222c2262617365223a7b226b696e64223a22756e696f6e222c226368696c6472656e223a5b7b226b696e64223a2274686973227d2c7b226b696e64223a227475706c655f746f5f75736572736574222c227475706c65736574223a22706172656e74222c22636f6d7075746564223a22766965776572227d5d7d2c227375627472616374223a7b226b696e64223a22636f6d7075746564222c2272656c6174696f6e223a2262616e6e6564227d7d5d2c227375626a65637473223a6e756c6c7d5d2c22637265617465645f6174223a22323032362d31312d32355430393a33303a34322e3635365a222c22757064617465645f6174223a22323032362d31312d32355430393a33303a34322e3635365a227d5d7d');
INSERT INTO public.tenants VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'org_6qzkk5ufdopoftpp3jrk6sslyq', 'dev', 'dev', 'http://dev.localhost:8080', 'dev.localhost', 'active', 1795599041869771, '', 0, '', 0, 0, 'production', '', '', 1795599041934229);
INSERT INTO public.user_groups VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'grp_q65qqezu44obzpkeatf32wiklb', 'administrators', 'Administrators', 'Users who may do everything in this tenant.', 'administrators
administrators
users who may do everything in this tenant.', 'applications:read applications:write audit:read federation:read federation:write groups:read groups:write me:read me:write resources:read resources:write scim:write settings:read settings:write users:read users:write webhooks:read webhooks:write', 1, 1795599041909654, 1795599041909654);
INSERT INTO public.user_groups VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'grp_2qpuh6vegn2kicjy77bbyz6onv', 'eng', 'Engineering', '', 'eng
engineering
', 'notes:read', 1, 1795599044601397, 1795599044608189);
INSERT INTO public.user_groups VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'grp_upqwtd62hjlhstcoabnxloofgi', 'ops', 'Operations', '', 'ops
operations
', '', 0, 1795599044635826, 1795599044635826);
INSERT INTO public.user_groups VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'grp_bqxzmzsh7eeuhrl6fwlkm6yth6', 'once', 'Once', '', 'once
once
', '', 0, 1795599044726402, 1795599044726402);
INSERT INTO public.user_search VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 1795599041871015, 'usr_lffqh7l2bv2uyiz7ueug3lz6u3', 'admin@dev.localhost
administrator
');
INSERT INTO public.user_search VALUES ('tnt_system', 1795599041879574, 'usr_eaxmihapr3flmf6gkoir2zwtkr', 'owner@dev.localhost
owner
');
INSERT INTO public.user_search VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 1795599043401971, 'usr_3wm5x6c7qtje6d2pejm3wtni24', 'zoe@example.com
');
INSERT INTO public.user_search VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 1795599044524198, 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'ann@example.com
ann
4');
INSERT INTO public.users VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_lffqh7l2bv2uyiz7ueug3lz6u3', 'admin@dev.localhost', 'admin@dev.localhost', true, 'active', 'Administrator', '', '', '', '', '', '$argon2id$v=19$m=19456,t=2,p=1$L63odFB9abHOQaUkX6kBRg$rTpRMRLvBp57dEAOaEz0XCwpFgP4R8sF58GEocEqH4A', false, 1795599041871015, 1795599041871015, 0, false, 0, 0);
INSERT INTO public.users VALUES ('tnt_system', 'usr_eaxmihapr3flmf6gkoir2zwtkr', 'owner@dev.localhost', 'owner@dev.localhost', true, 'active', 'Owner', '', '', '', '', '', '$argon2id$v=19$m=19456,t=2,p=1$ddZ6Ixu1JQPQvHClGYnHJA$ToRGPGZ21MJgjr6Ow1DhZ8n1VcPmZqYhvIQkQu6K6vQ', false, 1795599041879574, 1795599041879574, 0, false, 0, 0);
INSERT INTO public.users VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_3wm5x6c7qtje6d2pejm3wtni24', 'zoe@example.com', 'zoe@example.com', true, 'active', '', '', '', '', '', '', '$argon2id$v=19$m=19456,t=2,p=1$4DrnOK2tRtnbzI8asLaDWA$khi04ylhIYxCSHnZTZDtQb2qHxq1qQdjAMjFl/zIeSc', false, 1795599043401971, 1795599043401971, 1795599043979035, false, 0, 0);
INSERT INTO public.users VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'usr_qrjizdvyfd2jfqwkgpsfhxuzm6', 'ann@example.com', 'ann@example.com', true, 'active', 'Ann', '', '', '', '', '{"desk":4}', '$argon2id$v=19$m=19456,t=2,p=1$i5dben7PabornvOeIYobIQ$VNTwuzpM7gVexd2Q66qqiP6nP6jIkus4Q8+QGAHCWrA', false, 1795599044524198, 1795599044524198, 1795599044566410, false, 0, 0);
INSERT INTO public.webhook_deliveries VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'whs_hrwkxdmsmiqlywnxmqw2nviags', 'whd_23ocd2q63sozaibucdbza2bkrk', 23, 'evt_qvdf6m65htizejwqpp76kbm6i6', 'group.created', '', '', 168, 'retrying', 1, '[{"number":1,"started_at":"2026-11-25T09:30:44.672Z","duration_ms":0,"status":404,"error":"status"}]', '{"status":404,"headers":{"Content-Length":["19"],"Content-Type":["text/plain; charset=utf-8"],"Date":["Wed, 25 Nov 2026 09:30:44 GMT"],"X-Content-Type-Options":["nosniff"]},"body":"404 page not found\n","truncated":false}', 1795599105545621, 1795599044665519);
INSERT INTO public.webhook_deliveries VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'whs_hrwkxdmsmiqlywnxmqw2nviags', 'whd_23ocd2q65xutslxaww4d3czrwf', 24, 'evt_jx6wz42f4g2mlrwzen3rsr77eq', 'group.created', '', '', 163, 'retrying', 1, '[{"number":1,"started_at":"2026-11-25T09:30:44.737Z","duration_ms":0,"status":404,"error":"status"}]', '{"status":404,"headers":{"Content-Length":["19"],"Content-Type":["text/plain; charset=utf-8"],"Date":["Wed, 25 Nov 2026 09:30:44 GMT"],"X-Content-Type-Options":["nosniff"]},"body":"404 page not found\n","truncated":false}', 1795599102674843, 1795599044734081);
INSERT INTO public.webhook_lanes VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'whs_hrwkxdmsmiqlywnxmqw2nviags', 1795599102674843, '', 0, 0, 0, 1795599044672637, 0, 0);
INSERT INTO public.webhook_subscriptions VALUES ('tnt_jfkymfkczeie4zlc2so2g7njeo', 'whs_hrwkxdmsmiqlywnxmqw2nviags', 'hook', 'http://127.0.0.1:40755', '', '["group.created"]', '', 'null', 'null', 'enabled', '', '\x01c2d841fc24f325a0c09649f7ac87d97d0928f529f5f8a0f4d76ef6346ea74eee115c6fd860df3e8ab74cc098b5d48d09a550d2d592cad3b7bb9f8df23d039842f27d9243a9c96e5677072b01a869d4c3b0d6', '\x', 0, 22, 4611686018427387903, 1795599044628536, 1795599044628536);
SELECT pg_catalog.setval('public.goose_assertions_id_seq', 2, true);
SELECT pg_catalog.setval('public.goose_authn_id_seq', 3, true);
SELECT pg_catalog.setval('public.goose_controlplane_id_seq', 18, true);
SELECT pg_catalog.setval('public.goose_eventlog_id_seq', 6, true);
SELECT pg_catalog.setval('public.goose_external_id_seq', 7, true);
SELECT pg_catalog.setval('public.goose_factor_id_seq', 4, true);
SELECT pg_catalog.setval('public.goose_federation_id_seq', 5, true);
SELECT pg_catalog.setval('public.goose_federation_signin_id_seq', 5, true);
SELECT pg_catalog.setval('public.goose_idempotency_id_seq', 3, true);
SELECT pg_catalog.setval('public.goose_identity_id_seq', 19, true);
SELECT pg_catalog.setval('public.goose_jobs_id_seq', 6, true);
SELECT pg_catalog.setval('public.goose_management_id_seq', 12, true);
SELECT pg_catalog.setval('public.goose_masterkey_id_seq', 2, true);
SELECT pg_catalog.setval('public.goose_oauth_id_seq', 66, true);
SELECT pg_catalog.setval('public.goose_onetime_id_seq', 4, true);
SELECT pg_catalog.setval('public.goose_ratelimit_id_seq', 3, true);
SELECT pg_catalog.setval('public.goose_resources_id_seq', 2, true);
SELECT pg_catalog.setval('public.goose_samlkeys_id_seq', 5, true);
SELECT pg_catalog.setval('public.goose_session_id_seq', 6, true);
SELECT pg_catalog.setval('public.goose_tenantkeys_id_seq', 2, true);
SELECT pg_catalog.setval('public.goose_tuplestore_id_seq', 22, true);
SELECT pg_catalog.setval('public.goose_webhooks_id_seq', 12, true);
ALTER TABLE ONLY public.applications
    ADD CONSTRAINT applications_pkey PRIMARY KEY (tenant_id, client_id);
ALTER TABLE ONLY public.applications
    ADD CONSTRAINT applications_tenant_id_id_key UNIQUE (tenant_id, id);
ALTER TABLE ONLY public.assertion_sets
    ADD CONSTRAINT assertion_sets_pkey PRIMARY KEY (tenant_id, name);
ALTER TABLE ONLY public.authorization_requests
    ADD CONSTRAINT authorization_requests_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.authorizations
    ADD CONSTRAINT authorizations_pkey PRIMARY KEY (tenant_id, user_id, client_id);
ALTER TABLE ONLY public.backup_codes
    ADD CONSTRAINT backup_codes_pkey PRIMARY KEY (tenant_id, user_id, hash);
ALTER TABLE ONLY public.client_assertions
    ADD CONSTRAINT client_assertions_pkey PRIMARY KEY (tenant_id, hash);
ALTER TABLE ONLY public.codes
    ADD CONSTRAINT codes_pkey PRIMARY KEY (tenant_id, hash);
ALTER TABLE ONLY public.credentials
    ADD CONSTRAINT credentials_pkey PRIMARY KEY (tenant_id, credential_id);
ALTER TABLE ONLY public.dead_jobs
    ADD CONSTRAINT dead_jobs_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.device_codes
    ADD CONSTRAINT device_codes_pkey PRIMARY KEY (tenant_id, hash);
ALTER TABLE ONLY public.directory_versions
    ADD CONSTRAINT directory_versions_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.dpop_proofs
    ADD CONSTRAINT dpop_proofs_pkey PRIMARY KEY (tenant_id, replay_key);
ALTER TABLE ONLY public.email_changes
    ADD CONSTRAINT email_changes_pkey PRIMARY KEY (tenant_id, user_id, id);
ALTER TABLE ONLY public.ended_sessions
    ADD CONSTRAINT ended_sessions_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.event_heads
    ADD CONSTRAINT event_heads_pkey PRIMARY KEY (tenant_id);
ALTER TABLE ONLY public.event_readers
    ADD CONSTRAINT event_readers_pkey PRIMARY KEY (reader, tenant_id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (tenant_id, "position");
ALTER TABLE ONLY public.external_identities
    ADD CONSTRAINT external_identities_pkey PRIMARY KEY (tenant_id, connection_id, subject);
ALTER TABLE ONLY public.external_ids
    ADD CONSTRAINT external_ids_pkey PRIMARY KEY (tenant_id, object_id, client_id);
ALTER TABLE ONLY public.external_sessions
    ADD CONSTRAINT external_sessions_pkey PRIMARY KEY (tenant_id, session_id);
ALTER TABLE ONLY public.factors
    ADD CONSTRAINT factors_pkey PRIMARY KEY (tenant_id, user_id, id);
ALTER TABLE ONLY public.federation_assertions
    ADD CONSTRAINT federation_assertions_pkey PRIMARY KEY (tenant_id, connection_id, id);
ALTER TABLE ONLY public.federation_connections
    ADD CONSTRAINT federation_connections_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.federation_domains
    ADD CONSTRAINT federation_domains_pkey PRIMARY KEY (tenant_id, domain);
ALTER TABLE ONLY public.federation_tests
    ADD CONSTRAINT federation_tests_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.goose_assertions
    ADD CONSTRAINT goose_assertions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_authn
    ADD CONSTRAINT goose_authn_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_controlplane
    ADD CONSTRAINT goose_controlplane_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_eventlog
    ADD CONSTRAINT goose_eventlog_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_external
    ADD CONSTRAINT goose_external_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_factor
    ADD CONSTRAINT goose_factor_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_federation
    ADD CONSTRAINT goose_federation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_federation_signin
    ADD CONSTRAINT goose_federation_signin_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_idempotency
    ADD CONSTRAINT goose_idempotency_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_identity
    ADD CONSTRAINT goose_identity_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_jobs
    ADD CONSTRAINT goose_jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_lock
    ADD CONSTRAINT goose_lock_pkey PRIMARY KEY (lock_id);
ALTER TABLE ONLY public.goose_management
    ADD CONSTRAINT goose_management_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_masterkey
    ADD CONSTRAINT goose_masterkey_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_oauth
    ADD CONSTRAINT goose_oauth_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_onetime
    ADD CONSTRAINT goose_onetime_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_ratelimit
    ADD CONSTRAINT goose_ratelimit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_resources
    ADD CONSTRAINT goose_resources_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_samlkeys
    ADD CONSTRAINT goose_samlkeys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_session
    ADD CONSTRAINT goose_session_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_tenantkeys
    ADD CONSTRAINT goose_tenantkeys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_tuplestore
    ADD CONSTRAINT goose_tuplestore_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.goose_webhooks
    ADD CONSTRAINT goose_webhooks_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.grants
    ADD CONSTRAINT grants_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant_id, scope_hash);
ALTER TABLE ONLY public.identity_settings
    ADD CONSTRAINT identity_settings_pkey PRIMARY KEY (tenant_id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.known_devices
    ADD CONSTRAINT known_devices_pkey PRIMARY KEY (tenant_id, user_id, fingerprint);
ALTER TABLE ONLY public.lease_nodes
    ADD CONSTRAINT lease_nodes_pkey PRIMARY KEY (node_id);
ALTER TABLE ONLY public.master_keys
    ADD CONSTRAINT master_keys_pkey PRIMARY KEY (key_id);
ALTER TABLE ONLY public.oauth_settings
    ADD CONSTRAINT oauth_settings_pkey PRIMARY KEY (tenant_id);
ALTER TABLE ONLY public.onetime_tokens
    ADD CONSTRAINT onetime_tokens_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.organization_invitations
    ADD CONSTRAINT organization_invitations_pkey PRIMARY KEY (org_id, id);
ALTER TABLE ONLY public.organization_members
    ADD CONSTRAINT organization_members_pkey PRIMARY KEY (org_id, id);
ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations_slug_key UNIQUE (slug);
ALTER TABLE ONLY public.rate_limits
    ADD CONSTRAINT rate_limits_pkey PRIMARY KEY (tenant_id, bucket);
ALTER TABLE ONLY public.refresh_tokens
    ADD CONSTRAINT refresh_tokens_pkey PRIMARY KEY (tenant_id, hash);
ALTER TABLE ONLY public.relation_tuple_history
    ADD CONSTRAINT relation_tuple_history_pkey PRIMARY KEY (tenant_id, object_type, object_id, relation, subject_type, subject_id, subject_relation, created_rev);
ALTER TABLE ONLY public.relation_tuples
    ADD CONSTRAINT relation_tuples_pkey PRIMARY KEY (tenant_id, object_type, object_id, relation, subject_type, subject_id, subject_relation);
ALTER TABLE ONLY public.resource_attributes
    ADD CONSTRAINT resource_attributes_pkey PRIMARY KEY (tenant_id, type, external_id);
ALTER TABLE ONLY public.retired_clients
    ADD CONSTRAINT retired_clients_pkey PRIMARY KEY (tenant_id, client_id);
ALTER TABLE ONLY public.revocations
    ADD CONSTRAINT revocations_pkey PRIMARY KEY (tenant_id, kind, id);
ALTER TABLE ONLY public.saml_keys
    ADD CONSTRAINT saml_keys_pkey PRIMARY KEY (tenant_id, key_use, id);
ALTER TABLE ONLY public.saml_logouts
    ADD CONSTRAINT saml_logouts_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.scopes
    ADD CONSTRAINT scopes_pkey PRIMARY KEY (tenant_id, name);
ALTER TABLE ONLY public.service_accounts
    ADD CONSTRAINT service_accounts_pkey PRIMARY KEY (org_id, id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.sign_in_attempts
    ADD CONSTRAINT sign_in_attempts_pkey PRIMARY KEY (tenant_id, account);
ALTER TABLE ONLY public.signing_keys
    ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (tenant_id, kid);
ALTER TABLE ONLY public.tenant_commits
    ADD CONSTRAINT tenant_commits_pkey PRIMARY KEY (tenant_id, rev);
ALTER TABLE ONLY public.tenant_heads
    ADD CONSTRAINT tenant_heads_pkey PRIMARY KEY (tenant_id);
ALTER TABLE ONLY public.tenant_keys
    ADD CONSTRAINT tenant_keys_pkey PRIMARY KEY (tenant_id, "position");
ALTER TABLE ONLY public.tenant_leases
    ADD CONSTRAINT tenant_leases_pkey PRIMARY KEY (tenant_id, node_id);
ALTER TABLE ONLY public.tenant_receipts
    ADD CONSTRAINT tenant_receipts_pkey PRIMARY KEY (tenant_id, commit_id);
ALTER TABLE ONLY public.tenant_schemas
    ADD CONSTRAINT tenant_schemas_pkey PRIMARY KEY (tenant_id, rev);
ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_host_key UNIQUE (host);
ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_slug_key UNIQUE (slug);
ALTER TABLE ONLY public.trusted_issuers
    ADD CONSTRAINT trusted_issuers_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.user_groups
    ADD CONSTRAINT user_groups_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.user_import_chunks
    ADD CONSTRAINT user_import_chunks_pkey PRIMARY KEY (tenant_id, import_id, chunk);
ALTER TABLE ONLY public.user_import_errors
    ADD CONSTRAINT user_import_errors_pkey PRIMARY KEY (tenant_id, import_id, line);
ALTER TABLE ONLY public.user_imports
    ADD CONSTRAINT user_imports_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.user_search
    ADD CONSTRAINT user_search_pkey PRIMARY KEY (tenant_id, created_at, user_id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE ONLY public.webhook_dead_letters
    ADD CONSTRAINT webhook_dead_letters_pkey PRIMARY KEY (tenant_id, subscription_id, id);
ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (tenant_id, subscription_id, id);
ALTER TABLE ONLY public.webhook_lanes
    ADD CONSTRAINT webhook_lanes_pkey PRIMARY KEY (tenant_id, subscription_id);
ALTER TABLE ONLY public.webhook_subscriptions
    ADD CONSTRAINT webhook_subscriptions_pkey PRIMARY KEY (tenant_id, id);
CREATE INDEX applications_by_claim_names ON public.applications USING btree (tenant_id, claim_names) WHERE (claim_names <> ''::text);
CREATE INDEX applications_by_creation ON public.applications USING btree (tenant_id, created_at, id) WHERE (created_at > 0);
CREATE INDEX applications_by_entity_id ON public.applications USING btree (tenant_id, entity_id) WHERE (entity_id <> ''::text);
CREATE INDEX applications_by_source ON public.applications USING btree (source, created_at) WHERE (source <> ''::text);
CREATE INDEX applications_by_workload_issuers ON public.applications USING btree (tenant_id) WHERE (workload_issuers <> ''::text);
CREATE INDEX authorization_requests_by_expiry ON public.authorization_requests USING btree (expires_at);
CREATE INDEX authorizations_by_client ON public.authorizations USING btree (tenant_id, client_id);
CREATE INDEX client_assertions_by_expiry ON public.client_assertions USING btree (expires_at);
CREATE INDEX codes_by_expiry ON public.codes USING btree (expires_at);
CREATE INDEX dead_jobs_by_time ON public.dead_jobs USING btree (died_at);
CREATE INDEX device_codes_by_expiry ON public.device_codes USING btree (expires_at);
CREATE UNIQUE INDEX device_codes_by_user_code ON public.device_codes USING btree (tenant_id, user_hash);
CREATE INDEX dpop_proofs_by_expiry ON public.dpop_proofs USING btree (expires_at);
CREATE UNIQUE INDEX external_identities_by_user ON public.external_identities USING btree (tenant_id, user_id, connection_id);
CREATE INDEX external_ids_by_client ON public.external_ids USING btree (tenant_id, client_id, external_id, object_id) WHERE (external_id <> ''::text);
CREATE INDEX external_sessions_by_expiry ON public.external_sessions USING btree (expires_at);
CREATE INDEX external_sessions_by_provider_id ON public.external_sessions USING btree (tenant_id, connection_id, provider_id);
CREATE INDEX external_sessions_by_subject ON public.external_sessions USING btree (tenant_id, connection_id, subject);
CREATE INDEX federation_assertions_by_expiry ON public.federation_assertions USING btree (expires_at);
CREATE INDEX federation_connections_by_due ON public.federation_connections USING btree (check_at, tenant_id, id);
CREATE UNIQUE INDEX federation_connections_by_slug ON public.federation_connections USING btree (tenant_id, slug);
CREATE INDEX federation_tests_by_expiry ON public.federation_tests USING btree (expires_at);
CREATE INDEX grants_by_client ON public.grants USING btree (tenant_id, client_id, session_id);
CREATE INDEX grants_by_expiry ON public.grants USING btree (expires_at);
CREATE INDEX grants_by_name_id ON public.grants USING btree (tenant_id, client_id, name_id) WHERE (name_id <> ''::text);
CREATE INDEX grants_by_session ON public.grants USING btree (tenant_id, session_id);
CREATE INDEX grants_by_user ON public.grants USING btree (tenant_id, user_id, client_id);
CREATE INDEX idempotency_keys_by_expiry ON public.idempotency_keys USING btree (shard, expires_at);
CREATE INDEX jobs_by_due ON public.jobs USING btree (kind, due_at);
CREATE INDEX jobs_by_tenant ON public.jobs USING btree (kind, tenant_id, due_at);
CREATE INDEX known_devices_by_age ON public.known_devices USING btree (last_seen_at);
CREATE INDEX onetime_tokens_by_expiry ON public.onetime_tokens USING btree (expires_at);
CREATE INDEX onetime_tokens_by_user ON public.onetime_tokens USING btree (tenant_id, user_id) WHERE (user_id <> ''::text);
CREATE INDEX organization_invitations_by_expiry ON public.organization_invitations USING btree (expires_at, id) WHERE (state = 'pending'::text);
CREATE INDEX organization_invitations_by_time ON public.organization_invitations USING btree (org_id, created_at, id);
CREATE INDEX organization_invitations_by_token ON public.organization_invitations USING btree (token_hash) WHERE (state = 'pending'::text);
CREATE UNIQUE INDEX organization_invitations_pending ON public.organization_invitations USING btree (org_id, email_norm) WHERE (state = 'pending'::text);
CREATE INDEX organization_members_by_time ON public.organization_members USING btree (org_id, joined_at, id);
CREATE UNIQUE INDEX organization_members_by_user ON public.organization_members USING btree (user_id, org_id);
CREATE INDEX rate_limits_by_expiry ON public.rate_limits USING btree (shard, expires_at);
CREATE INDEX refresh_tokens_by_expiry ON public.refresh_tokens USING btree (expires_at);
CREATE INDEX refresh_tokens_by_predecessor ON public.refresh_tokens USING btree (tenant_id, predecessor) WHERE (predecessor <> ''::text);
CREATE INDEX relation_tuple_history_by_condition ON public.relation_tuple_history USING btree (tenant_id, object_type, condition, object_id, relation, subject_type, subject_id, subject_relation) WHERE (condition <> ''::text);
CREATE INDEX relation_tuple_history_by_subject ON public.relation_tuple_history USING btree (tenant_id, subject_type, subject_id, object_type, object_id, relation, subject_relation) WHERE (relation <> ''::text);
CREATE INDEX relation_tuple_history_newest ON public.relation_tuple_history USING btree (tenant_id, object_type, created_rev, object_id) WHERE (relation = ''::text);
CREATE INDEX relation_tuple_history_usersets ON public.relation_tuple_history USING btree (tenant_id, object_type, object_id, relation, subject_type, subject_id, subject_relation) WHERE (subject_relation <> ''::text);
CREATE INDEX relation_tuples_by_condition ON public.relation_tuples USING btree (tenant_id, object_type, condition, object_id, relation, subject_type, subject_id, subject_relation) WHERE (condition <> ''::text);
CREATE INDEX relation_tuples_by_expiry ON public.relation_tuples USING btree (tenant_id, expires_at) WHERE (expires_at <> 0);
CREATE INDEX relation_tuples_by_subject ON public.relation_tuples USING btree (tenant_id, subject_type, subject_id, object_type, object_id, relation, subject_relation) WHERE (relation <> ''::text);
CREATE INDEX relation_tuples_newest ON public.relation_tuples USING btree (tenant_id, object_type, created_rev, object_id) WHERE (relation = ''::text);
CREATE INDEX relation_tuples_usersets ON public.relation_tuples USING btree (tenant_id, object_type, object_id, relation, subject_type, subject_id, subject_relation) WHERE (subject_relation <> ''::text);
CREATE INDEX revocations_by_change ON public.revocations USING btree (changed_at);
CREATE INDEX revocations_by_expiry ON public.revocations USING btree (expires_at);
CREATE UNIQUE INDEX saml_keys_active ON public.saml_keys USING btree (tenant_id, key_use) WHERE (state = 'active'::text);
CREATE INDEX saml_keys_due ON public.saml_keys USING btree (due_at);
CREATE UNIQUE INDEX saml_keys_next ON public.saml_keys USING btree (tenant_id, key_use) WHERE (state = 'next'::text);
CREATE INDEX saml_logouts_by_expiry ON public.saml_logouts USING btree (expires_at);
CREATE UNIQUE INDEX service_accounts_by_client ON public.service_accounts USING btree (client_id);
CREATE INDEX service_accounts_by_time ON public.service_accounts USING btree (org_id, created_at, id);
CREATE INDEX sessions_by_user ON public.sessions USING btree (tenant_id, user_id) WHERE (user_id <> ''::text);
CREATE UNIQUE INDEX signing_keys_active ON public.signing_keys USING btree (tenant_id, alg) WHERE (state = 'active'::text);
CREATE INDEX signing_keys_by_due_at ON public.signing_keys USING btree (due_at, kid);
CREATE UNIQUE INDEX signing_keys_next ON public.signing_keys USING btree (tenant_id, alg) WHERE (state = 'next'::text);
CREATE INDEX tenant_receipts_by_time ON public.tenant_receipts USING btree (tenant_id, committed_at);
CREATE INDEX tenants_by_age ON public.tenants USING btree (created_at, id);
CREATE INDEX tenants_by_organization ON public.tenants USING btree (org_id, created_at, id);
CREATE INDEX tenants_by_purge ON public.tenants USING btree (purge_at, id) WHERE (purge_at > 0);
CREATE INDEX tenants_inactive ON public.tenants USING btree (id) WHERE (state <> 'active'::text);
CREATE UNIQUE INDEX trusted_issuers_by_issuer ON public.trusted_issuers USING btree (tenant_id, issuer);
CREATE INDEX user_groups_by_creation ON public.user_groups USING btree (tenant_id, created_at, id) WHERE (created_at > 0);
CREATE UNIQUE INDEX user_groups_by_slug ON public.user_groups USING btree (tenant_id, slug) WHERE (slug <> ''::text);
CREATE INDEX user_imports_unfinished ON public.user_imports USING btree (tenant_id) WHERE (finished_at = 0);
CREATE INDEX users_by_creation ON public.users USING btree (tenant_id, created_at, id) WHERE (created_at > 0);
CREATE UNIQUE INDEX users_by_email ON public.users USING btree (tenant_id, email_norm) WHERE (email_norm <> ''::text);
CREATE INDEX users_by_state ON public.users USING btree (tenant_id, state, created_at, id) WHERE (state <> ''::text);
CREATE INDEX webhook_dead_letters_by_expiry ON public.webhook_dead_letters USING btree (tenant_id, subscription_id, expires_at);
CREATE INDEX webhook_dead_letters_by_id ON public.webhook_dead_letters USING btree (tenant_id, id);
CREATE INDEX webhook_dead_letters_by_state ON public.webhook_dead_letters USING btree (tenant_id, subscription_id, state, id);
CREATE INDEX webhook_deliveries_by_due ON public.webhook_deliveries USING btree (tenant_id, subscription_id, due_at, id) WHERE (due_at > 0);
CREATE INDEX webhook_deliveries_by_id ON public.webhook_deliveries USING btree (tenant_id, id);
CREATE INDEX webhook_lanes_by_due ON public.webhook_lanes USING btree (due_at) WHERE (paused_at = 0);
CREATE INDEX webhook_lanes_paused ON public.webhook_lanes USING btree (tenant_id) WHERE (paused_at > 0);
ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organizations(id);
