CREATE TABLE applications (
    tenant_id            TEXT   NOT NULL,
    client_id            TEXT   NOT NULL,
    id                   TEXT   NOT NULL,
    name                 TEXT   NOT NULL,
    type                 TEXT   NOT NULL, -- spa, native, m2m, server
    state                TEXT   NOT NULL, -- enabled, disabled
    allowed_scopes       TEXT   NOT NULL, -- separated by spaces
    audience             TEXT   NOT NULL, -- '' for the tenant's base URL
    access_token_ttl_s   BIGINT NOT NULL,
    signing_alg          TEXT   NOT NULL, -- ES256, RS256
    secret_hash          BYTEA  NOT NULL, -- SHA-256; 32 zero bytes when there is none
    previous_secret_hash BYTEA  NOT NULL,
    previous_expires_at  BIGINT NOT NULL, -- microseconds since 1970, as every instant
    created_at           BIGINT NOT NULL, allowed_origins TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '', redirect_uris TEXT NOT NULL DEFAULT '', refresh_token_ttl_s BIGINT NOT NULL DEFAULT 2592000, tags TEXT NOT NULL DEFAULT '', search TEXT NOT NULL DEFAULT '', updated_at BIGINT NOT NULL DEFAULT 0, changed_by TEXT NOT NULL DEFAULT '', secret_rotated_at BIGINT NOT NULL DEFAULT 0, last_used_at BIGINT NOT NULL DEFAULT 0, token_exchange TEXT NOT NULL DEFAULT '', options TEXT NOT NULL DEFAULT '', service_provider TEXT NOT NULL DEFAULT '', entity_id TEXT NOT NULL DEFAULT '', claim_names TEXT NOT NULL DEFAULT '', source TEXT NOT NULL DEFAULT '', workload_issuers TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, client_id),
    UNIQUE (tenant_id, id)
);
CREATE TABLE assertion_sets (
    tenant_id  TEXT NOT NULL,
    name       TEXT NOT NULL,
    document   TEXT NOT NULL,
    assertions BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, name)
);
CREATE TABLE authorization_requests (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    request    TEXT   NOT NULL, -- JSON
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, answer TEXT NOT NULL DEFAULT '', browser TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE authorizations (
    tenant_id  TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    client_id  TEXT   NOT NULL,
    scopes     TEXT   NOT NULL, -- that the user has consented to, separated by spaces
    created_at BIGINT NOT NULL,
    used_at    BIGINT NOT NULL, claims TEXT NOT NULL DEFAULT '', -- when the user was last sent back to the application
    PRIMARY KEY (tenant_id, user_id, client_id)
) WITHOUT ROWID;
CREATE TABLE backup_codes (
    tenant_id TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    hash      TEXT NOT NULL, -- HMAC-SHA-256
    PRIMARY KEY (tenant_id, user_id, hash)
) WITHOUT ROWID;
CREATE TABLE client_assertions (
    tenant_id  TEXT   NOT NULL,
    hash       TEXT   NOT NULL, -- of client_id and jti
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, hash)
) WITHOUT ROWID;
CREATE TABLE codes (
    tenant_id    TEXT   NOT NULL,
    hash         TEXT   NOT NULL,
    grant_id     TEXT   NOT NULL,
    client_id    TEXT   NOT NULL,
    redirect_uri TEXT   NOT NULL,
    challenge    TEXT   NOT NULL, -- RFC 7636, S256
    expires_at   BIGINT NOT NULL,
    used_at      BIGINT NOT NULL, dpop_jkt TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, hash)
) WITHOUT ROWID;
CREATE TABLE credentials (
    tenant_id     TEXT NOT NULL,
    credential_id TEXT NOT NULL, -- base64url
    user_id       TEXT NOT NULL,
    factor_id     TEXT NOT NULL,
    PRIMARY KEY (tenant_id, credential_id)
) WITHOUT ROWID;
CREATE TABLE dead_jobs (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    attempts   BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    died_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE device_codes (
    tenant_id  TEXT   NOT NULL,
    hash       TEXT   NOT NULL, -- of the device's code
    user_hash  TEXT   NOT NULL, -- of the code that the user enters
    client_id  TEXT   NOT NULL,
    scope      TEXT   NOT NULL, -- asked for
    audience   TEXT   NOT NULL,
    client_ip  TEXT   NOT NULL, -- from where it was asked
    grant_id   TEXT   NOT NULL, -- the grant of the user; empty: there is none yet
    denied     BOOLEAN NOT NULL,
    interval_s BIGINT NOT NULL, -- between two polls
    polled_at  BIGINT NOT NULL,
    used_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, hash)
) WITHOUT ROWID;
CREATE TABLE directory_versions (
    name    TEXT   NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL
);
CREATE TABLE dpop_proofs (
    tenant_id  TEXT   NOT NULL,
    replay_key TEXT   NOT NULL, -- hash of the key's thumbprint and jti
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, replay_key)
) WITHOUT ROWID;
CREATE TABLE email_changes (
    tenant_id  TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    new_email  TEXT    NOT NULL,
    verified   BOOLEAN NOT NULL,
    created_at BIGINT  NOT NULL,
    expires_at BIGINT  NOT NULL,
    PRIMARY KEY (tenant_id, user_id, id)
) WITHOUT ROWID;
CREATE TABLE ended_sessions (
    tenant_id TEXT NOT NULL,
    id        TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE event_heads (
    tenant_id TEXT   NOT NULL PRIMARY KEY,
    position  BIGINT NOT NULL,
    floor     BIGINT NOT NULL DEFAULT 0,
    revision  BIGINT NOT NULL DEFAULT 0
, commit_events BIGINT NOT NULL DEFAULT 0, floor_commit_events BIGINT NOT NULL DEFAULT 0, floor_revision BIGINT NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE event_readers (
    reader    TEXT   NOT NULL,
    tenant_id TEXT   NOT NULL,
    position  BIGINT NOT NULL,
    PRIMARY KEY (reader, tenant_id)
) WITHOUT ROWID;
CREATE TABLE events (
    tenant_id   TEXT   NOT NULL,
    position    BIGINT NOT NULL,
    id          TEXT   NOT NULL,
    type        TEXT   NOT NULL,
    occurred_at BIGINT NOT NULL,
    origin      TEXT   NOT NULL,
    data        TEXT   NOT NULL,
    revision    BIGINT NOT NULL DEFAULT 0, commit_events BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, position)
) WITHOUT ROWID;
CREATE TABLE external_identities (
    tenant_id     TEXT   NOT NULL,
    connection_id TEXT   NOT NULL,
    subject       TEXT   NOT NULL, -- as the provider calls the person
    user_id       TEXT   NOT NULL,
    slug          TEXT   NOT NULL, -- of the connection, as is kind
    kind          TEXT   NOT NULL,
    email         TEXT   NOT NULL, -- for display; empty: unknown
    linked_at     BIGINT NOT NULL,
    last_used_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, subject)
) WITHOUT ROWID;
CREATE TABLE external_ids (
    tenant_id   TEXT NOT NULL,
    object_id   TEXT NOT NULL, -- of a user or a group
    client_id   TEXT NOT NULL,
    external_id TEXT NOT NULL,
    PRIMARY KEY (tenant_id, object_id, client_id)
) WITHOUT ROWID;
CREATE TABLE external_sessions (
    tenant_id     TEXT   NOT NULL,
    session_id    TEXT   NOT NULL, -- of the product
    connection_id TEXT   NOT NULL,
    subject       TEXT   NOT NULL,
    provider_id   TEXT   NOT NULL, -- sid or SessionIndex; empty: none
    hint          BLOB   NOT NULL, -- sealed: the ID token or the NameID
    expires_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, session_id)
) WITHOUT ROWID;
CREATE TABLE factors (
    tenant_id    TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    kind         TEXT   NOT NULL, -- totp, sms, webauthn
    label        TEXT   NOT NULL,
    secret       BLOB   NOT NULL, -- sealed: a key, a number, a credential
    last_step    BIGINT NOT NULL, -- of a key: the newest time step that was accepted
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, id)
) WITHOUT ROWID;
CREATE TABLE federation_assertions (
    tenant_id     TEXT   NOT NULL,
    connection_id TEXT   NOT NULL,
    id            TEXT   NOT NULL,
    expires_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, id)
) WITHOUT ROWID;
CREATE TABLE federation_connections (
    tenant_id     TEXT   NOT NULL,
    id            TEXT   NOT NULL,
    slug          TEXT   NOT NULL,
    kind          TEXT   NOT NULL,
    name          TEXT   NOT NULL,
    state         TEXT   NOT NULL,
    settings      TEXT   NOT NULL,
    client_secret BLOB   NOT NULL, -- sealed, as the private key; empty: none
    private_key   BLOB   NOT NULL,
    metadata      TEXT   NOT NULL, -- what the provider publishes
    metadata_xml  TEXT   NOT NULL, -- as it was sent; empty: it was not
    check_at      BIGINT NOT NULL, -- when the metadata is due
    warned_at     BIGINT NOT NULL, -- the end of the certificate about which there was an event
    version       BIGINT NOT NULL, -- counts changes
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE federation_domains (
    tenant_id     TEXT NOT NULL,
    domain        TEXT NOT NULL, -- lower-case ASCII
    connection_id TEXT NOT NULL,
    PRIMARY KEY (tenant_id, domain)
) WITHOUT ROWID;
CREATE TABLE federation_tests (
    tenant_id     TEXT   NOT NULL,
    id            TEXT   NOT NULL,
    connection_id TEXT   NOT NULL,
    report        BLOB   NOT NULL, -- sealed; empty: the test is not completed
    begun_at      BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE goose_assertions (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_authn (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_controlplane (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_eventlog (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_external (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_factor (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_federation (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_federation_signin (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_idempotency (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_identity (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_jobs (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_management (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_masterkey (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_oauth (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_onetime (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_ratelimit (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_resources (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_samlkeys (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_session (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_tenantkeys (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_tuplestore (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE goose_webhooks (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE grants (
    tenant_id        TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    client_id        TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    session_id       TEXT    NOT NULL,
    scope            TEXT    NOT NULL, -- as it was granted, without those of groups
    audience         TEXT    NOT NULL,
    nonce            TEXT    NOT NULL,
    methods          TEXT    NOT NULL,
    auth_time        BIGINT  NOT NULL,
    second_factor_at BIGINT  NOT NULL,
    created_at       BIGINT  NOT NULL,
    expires_at       BIGINT  NOT NULL, -- of the whole family of refresh tokens
    revoked_at       BIGINT  NOT NULL, name_id TEXT NOT NULL DEFAULT '', authorization_details TEXT NOT NULL DEFAULT '', requested_claims TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE idempotency_keys (
    tenant_id    TEXT   NOT NULL,
    scope_hash   BYTEA  NOT NULL, -- SHA-256 of caller, operation and key
    request_hash BYTEA  NOT NULL, -- SHA-256 of the content of the request
    commit_id    TEXT   NOT NULL, -- the same for every attempt
    holder       TEXT   NOT NULL, -- the attempt under way
    lease_until  BIGINT NOT NULL,
    status       BIGINT NOT NULL,
    response     BYTEA  NOT NULL, -- sealed for (tenant_id, scope_hash)
    shard        BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, scope_hash)
);
CREATE TABLE identity_settings (
    tenant_id TEXT NOT NULL,
    settings  TEXT NOT NULL,
    PRIMARY KEY (tenant_id)
) WITHOUT ROWID;
CREATE TABLE jobs (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    payload    BLOB   NOT NULL, -- sealed
    attempts   BIGINT NOT NULL, -- begun
    created_at BIGINT NOT NULL,
    due_at     BIGINT NOT NULL, -- of a running job: the end of its lease
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE known_devices (
    tenant_id    TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    fingerprint  TEXT   NOT NULL,
    last_seen_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, fingerprint)
) WITHOUT ROWID;
CREATE TABLE lease_nodes (
    node_id  TEXT   NOT NULL,
    address  TEXT   NOT NULL,
    lease    BIGINT NOT NULL,
    renewals BIGINT NOT NULL,
    PRIMARY KEY (node_id)
);
CREATE TABLE master_keys (
    key_id     TEXT   NOT NULL, -- in hexadecimal
    position   BIGINT NOT NULL, -- the largest one seals
    root       BLOB   NOT NULL, -- the key of derived values, sealed under this key; empty: retired
    created_at BIGINT NOT NULL,
    retired_at BIGINT NOT NULL, -- 0: not retired
    PRIMARY KEY (key_id)
) WITHOUT ROWID;
CREATE TABLE oauth_settings (
    tenant_id TEXT NOT NULL,
    settings  TEXT NOT NULL,
    PRIMARY KEY (tenant_id)
) WITHOUT ROWID;
CREATE TABLE onetime_tokens (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL, -- SHA-256 of the secret
    kind       TEXT   NOT NULL,
    user_id    TEXT   NOT NULL, -- empty: of no user
    payload    BLOB   NOT NULL, -- sealed
    attempts   BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE organization_invitations (
    org_id      TEXT   NOT NULL,
    id          TEXT   NOT NULL,
    email       TEXT   NOT NULL, -- as entered
    email_norm  TEXT   NOT NULL, -- for comparisons
    role        TEXT   NOT NULL,
    state       TEXT   NOT NULL,
    token_hash  TEXT   NOT NULL, -- of the link that was sent last; '' before the first mail
    invited_by  TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    accepted_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (org_id, id)
);
CREATE TABLE organization_members (
    org_id     TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    invited_by TEXT   NOT NULL, -- id of a user or application; '' for the first owner
    joined_at  BIGINT NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE TABLE organizations (
    id         TEXT   NOT NULL PRIMARY KEY,
    slug       TEXT   NOT NULL UNIQUE,
    name       TEXT   NOT NULL,
    created_at BIGINT NOT NULL -- microseconds since 1970, as every instant
, updated_at BIGINT NOT NULL DEFAULT 0);
CREATE TABLE rate_limits (
    tenant_id  TEXT   NOT NULL,
    bucket     TEXT   NOT NULL,
    arrival    BIGINT NOT NULL,
    shard      BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, -- microseconds since 1970
    PRIMARY KEY (tenant_id, bucket)
);
CREATE TABLE refresh_tokens (
    tenant_id  TEXT   NOT NULL,
    hash       TEXT   NOT NULL,
    grant_id   TEXT   NOT NULL,
    client_id  TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    rotated_at BIGINT NOT NULL, dpop_jkt TEXT NOT NULL DEFAULT '', predecessor TEXT NOT NULL DEFAULT '', seed TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, hash)
) WITHOUT ROWID;
CREATE TABLE relation_tuple_history (
    tenant_id        TEXT   NOT NULL,
    object_type      TEXT   NOT NULL,
    object_id        TEXT   NOT NULL,
    relation         TEXT   NOT NULL,
    subject_type     TEXT   NOT NULL,
    subject_id       TEXT   NOT NULL,
    subject_relation TEXT   NOT NULL,
    condition        TEXT   NOT NULL,
    context          TEXT   NOT NULL,
    expires_at       BIGINT NOT NULL,
    created_rev      BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    created_by       TEXT   NOT NULL,
    deleted_rev      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, object_type, object_id, relation, subject_type, subject_id, subject_relation, created_rev)
) WITHOUT ROWID;
CREATE TABLE relation_tuples (
    tenant_id        TEXT   NOT NULL,
    object_type      TEXT   NOT NULL,
    object_id        TEXT   NOT NULL,
    relation         TEXT   NOT NULL,
    subject_type     TEXT   NOT NULL,
    subject_id       TEXT   NOT NULL,
    subject_relation TEXT   NOT NULL,
    condition        TEXT   NOT NULL,
    context          TEXT   NOT NULL,
    expires_at       BIGINT NOT NULL,
    created_rev      BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    created_by       TEXT   NOT NULL,
    PRIMARY KEY (tenant_id, object_type, object_id, relation, subject_type, subject_id, subject_relation)
) WITHOUT ROWID;
CREATE TABLE resource_attributes (
    tenant_id   TEXT NOT NULL,
    type        TEXT NOT NULL,
    external_id TEXT NOT NULL,
    attributes  TEXT,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, type, external_id)
);
CREATE TABLE retired_clients (
    tenant_id  TEXT   NOT NULL,
    client_id  TEXT   NOT NULL,
    retired_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, client_id)
) WITHOUT ROWID;
CREATE TABLE revocations (
    tenant_id  TEXT   NOT NULL,
    kind       TEXT   NOT NULL, -- token, client or key
    id         TEXT   NOT NULL, -- jti, client_id or kid
    changed_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
) WITHOUT ROWID;
CREATE TABLE saml_keys (
    tenant_id      TEXT   NOT NULL,
    key_use        TEXT   NOT NULL, -- service_provider, identity_provider
    id             TEXT   NOT NULL, -- SHA-256 of the certificate, in hexadecimal
    state          TEXT   NOT NULL, -- next, active, retired
    private_sealed BLOB   NOT NULL, -- PKCS #8 sealed, for (tenant_id, id)
    certificate    BLOB   NOT NULL, -- DER
    created_at     BIGINT NOT NULL,
    activated_at   BIGINT NOT NULL,
    retired_at     BIGINT NOT NULL,
    due_at         BIGINT NOT NULL, -- when the next step of the rotation is due
    PRIMARY KEY (tenant_id, key_use, id)
) WITHOUT ROWID;
CREATE TABLE saml_logouts (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    logout     BLOB   NOT NULL, -- sealed: the request, and the rest of the sign-out
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE scopes (
    tenant_id   TEXT   NOT NULL,
    name        TEXT   NOT NULL,
    description TEXT   NOT NULL,
    entitlement TEXT   NOT NULL, -- self, group
    created_at  BIGINT NOT NULL, -- microseconds since 1970
    PRIMARY KEY (tenant_id, name)
);
CREATE TABLE service_accounts (
    org_id     TEXT   NOT NULL,
    id         TEXT   NOT NULL, -- of the application
    client_id  TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    created_by TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE TABLE sessions (
    tenant_id        TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    token_hash       BLOB    NOT NULL, -- SHA-256
    methods          TEXT    NOT NULL, -- RFC 8176, separated by spaces
    auth_time        BIGINT  NOT NULL,
    second_factor_at BIGINT  NOT NULL,
    must_enrol       BOOLEAN NOT NULL, -- good for adding a second factor only
    created_at       BIGINT  NOT NULL,
    last_active_at   BIGINT  NOT NULL,
    expires_at       BIGINT  NOT NULL,
    idle             BIGINT  NOT NULL,
    ip               TEXT    NOT NULL,
    user_agent       TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE sign_in_attempts (
    tenant_id  TEXT   NOT NULL,
    account    TEXT   NOT NULL, -- a keyed hash
    failures   BIGINT NOT NULL,
    next_at    BIGINT NOT NULL, -- when the next attempt may come
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, account)
) WITHOUT ROWID;
CREATE TABLE signing_keys (
    tenant_id      TEXT   NOT NULL,
    kid            TEXT   NOT NULL, -- RFC 7638 thumbprint
    alg            TEXT   NOT NULL, -- ES256, RS256
    state          TEXT   NOT NULL, -- active
    private_sealed BYTEA  NOT NULL, -- PKCS #8 sealed, for (tenant_id, kid)
    created_at     BIGINT NOT NULL, activated_at BIGINT NOT NULL DEFAULT 0, retired_at BIGINT NOT NULL DEFAULT 0, removed_at BIGINT NOT NULL DEFAULT 0, due_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, kid)
);
CREATE TABLE tenant_commits (
    tenant_id    TEXT   NOT NULL,
    rev          BIGINT NOT NULL,
    actor        TEXT   NOT NULL,
    committed_at BIGINT NOT NULL,
    changes      TEXT   NOT NULL, event TEXT NOT NULL DEFAULT '', commit_events BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, rev)
) WITHOUT ROWID;
CREATE TABLE tenant_heads (
    tenant_id  TEXT   NOT NULL,
    epoch      TEXT   NOT NULL,
    rev        BIGINT NOT NULL,
    schema_rev BIGINT NOT NULL,
    min_rev    BIGINT NOT NULL, commit_events BIGINT NOT NULL DEFAULT 0, collected_rev BIGINT NOT NULL DEFAULT 0, committed_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id)
) WITHOUT ROWID;
CREATE TABLE tenant_keys (
    tenant_id TEXT   NOT NULL,
    position  BIGINT NOT NULL,
    key_id    TEXT   NOT NULL, -- of the master key, in hexadecimal
    sealed    BLOB   NOT NULL, -- the key of the tenant, for (tenant_id, 'tenant key ' || key_id)
    PRIMARY KEY (tenant_id, position)
) WITHOUT ROWID;
CREATE TABLE tenant_leases (
    tenant_id TEXT NOT NULL,
    node_id   TEXT NOT NULL,
    PRIMARY KEY (tenant_id, node_id)
);
CREATE TABLE tenant_receipts (
    tenant_id    TEXT   NOT NULL,
    commit_id    TEXT   NOT NULL,
    request_hash BLOB  NOT NULL,
    rev          BIGINT NOT NULL,
    result       TEXT   NOT NULL,
    committed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, commit_id)
) WITHOUT ROWID;
CREATE TABLE tenant_schemas (
    tenant_id TEXT   NOT NULL,
    rev       BIGINT NOT NULL,
    document  BLOB  NOT NULL,
    PRIMARY KEY (tenant_id, rev)
) WITHOUT ROWID;
CREATE TABLE tenants (
    id         TEXT   NOT NULL PRIMARY KEY,
    org_id     TEXT   NOT NULL REFERENCES organizations (id),
    slug       TEXT   NOT NULL UNIQUE,
    name       TEXT   NOT NULL,
    base_url   TEXT   NOT NULL,
    host       TEXT   NOT NULL UNIQUE, -- of base_url, without port; it identifies the tenant of a request
    state      TEXT   NOT NULL,        -- active, suspended, decommissioned
    created_at BIGINT NOT NULL
, rate_limits TEXT NOT NULL DEFAULT '', suspended_at BIGINT NOT NULL DEFAULT 0, suspend_reason TEXT NOT NULL DEFAULT '', decommissioned_at BIGINT NOT NULL DEFAULT 0, purge_at BIGINT NOT NULL DEFAULT 0, environment TEXT NOT NULL DEFAULT 'production', region TEXT NOT NULL DEFAULT '', created_by TEXT NOT NULL DEFAULT '', updated_at BIGINT NOT NULL DEFAULT 0);
CREATE TABLE trusted_issuers (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    issuer     TEXT    NOT NULL, -- iss of its tokens
    enabled    BOOLEAN NOT NULL,
    settings   TEXT    NOT NULL, -- JSON
    created_at BIGINT  NOT NULL,
    updated_at BIGINT  NOT NULL,
    changed_by TEXT    NOT NULL, -- actor of the last change; empty: the product
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE user_groups (
    tenant_id    TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    slug         TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    description  TEXT   NOT NULL,
    search       TEXT   NOT NULL, -- slug, name and description, folded
    scopes       TEXT   NOT NULL, -- separated by spaces
    member_count BIGINT NOT NULL,
    created_at   BIGINT NOT NULL, -- microseconds since 1970
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE user_import_chunks (
    tenant_id TEXT   NOT NULL,
    import_id TEXT   NOT NULL,
    chunk     BIGINT NOT NULL,
    sealed    BLOB  NOT NULL,
    PRIMARY KEY (tenant_id, import_id, chunk)
) WITHOUT ROWID;
CREATE TABLE user_import_errors (
    tenant_id TEXT   NOT NULL,
    import_id TEXT   NOT NULL,
    line      BIGINT NOT NULL,
    email     TEXT   NOT NULL,
    code      TEXT   NOT NULL,
    message   TEXT   NOT NULL,
    PRIMARY KEY (tenant_id, import_id, line)
) WITHOUT ROWID;
CREATE TABLE user_imports (
    tenant_id   TEXT   NOT NULL,
    id          TEXT   NOT NULL,
    state       TEXT   NOT NULL, -- receiving, queued, running, completed, cancelled
    origin      TEXT   NOT NULL, -- of the request, as JSON
    caller      TEXT   NOT NULL, -- the import has its rights; JSON, empty: the product
    total       BIGINT NOT NULL,
    imported    BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    chunks      BIGINT NOT NULL,
    next_chunk  BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    started_at  BIGINT NOT NULL,
    finished_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE user_search (
    tenant_id  TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    user_id    TEXT   NOT NULL,
    text       TEXT   NOT NULL,
    PRIMARY KEY (tenant_id, created_at, user_id)
) WITHOUT ROWID;
CREATE TABLE users (
    tenant_id              TEXT    NOT NULL,
    id                     TEXT    NOT NULL,
    email                  TEXT    NOT NULL,
    email_norm             TEXT    NOT NULL, -- folded for comparison
    email_verified         BOOLEAN NOT NULL,
    state                  TEXT    NOT NULL, -- pending, active, disabled
    name                   TEXT    NOT NULL,
    given_name             TEXT    NOT NULL,
    family_name            TEXT    NOT NULL,
    picture                TEXT    NOT NULL,
    locale                 TEXT    NOT NULL,
    attributes             TEXT    NOT NULL, -- JSON object; '' when there is none
    password_hash          TEXT    NOT NULL, -- '' when there is no password
    password_must_be_reset BOOLEAN NOT NULL,
    created_at             BIGINT  NOT NULL,
    updated_at             BIGINT  NOT NULL,
    last_signed_in_at      BIGINT  NOT NULL, must_enrol BOOLEAN NOT NULL DEFAULT false, signed_out_at BIGINT NOT NULL DEFAULT 0, password_check_at BIGINT NOT NULL DEFAULT 0, -- 0: never
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE TABLE webhook_dead_letters (
    tenant_id            TEXT   NOT NULL,
    subscription_id      TEXT   NOT NULL,
    id                   TEXT   NOT NULL,
    delivery_id          TEXT   NOT NULL,
    event_id             TEXT   NOT NULL,
    event_type           TEXT   NOT NULL,
    event                TEXT   NOT NULL, -- the body
    reason               TEXT   NOT NULL,
    state                TEXT   NOT NULL,
    history              TEXT   NOT NULL,
    last_response        TEXT   NOT NULL,
    dead_lettered_at     BIGINT NOT NULL,
    expires_at           BIGINT NOT NULL, -- by the clock of the lane
    replayed_delivery_id TEXT   NOT NULL,
    dropped_by           TEXT   NOT NULL,
    dropped_at           BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, subscription_id, id)
);
CREATE TABLE webhook_deliveries (
    tenant_id       TEXT   NOT NULL,
    subscription_id TEXT   NOT NULL,
    id              TEXT   NOT NULL,
    position        BIGINT NOT NULL, -- of the event in the log of the tenant
    event_id        TEXT   NOT NULL,
    event_type      TEXT   NOT NULL,
    event           TEXT   NOT NULL, -- the body, if it is not made from the log
    operations      TEXT   NOT NULL, -- the visible operations of a bulk write; empty: all
    size            BIGINT NOT NULL, -- of the data of the event, in bytes
    status          TEXT   NOT NULL,
    attempts        BIGINT NOT NULL, -- finished
    history         TEXT   NOT NULL, -- of the attempts
    last_response   TEXT   NOT NULL, -- empty: none
    due_at          BIGINT NOT NULL, -- by the clock of the lane; 0: there is no further attempt
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, subscription_id, id)
) WITHOUT ROWID;
CREATE TABLE webhook_lanes (
    tenant_id       TEXT    NOT NULL,
    subscription_id TEXT    NOT NULL,
    due_at          BIGINT  NOT NULL,
    holder          TEXT    NOT NULL DEFAULT '',
    lease_until     BIGINT  NOT NULL DEFAULT 0,
    clock_offset    BIGINT  NOT NULL DEFAULT 0,
    paused_at       BIGINT  NOT NULL DEFAULT 0, -- 0: the clock runs
    failing_since   BIGINT  NOT NULL DEFAULT 0, -- 0: the last attempt was successful
    failing_noted   BIGINT  NOT NULL DEFAULT 0, -- 1: there was an event about it
    last_success_at BIGINT  NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, subscription_id)
) WITHOUT ROWID;
CREATE TABLE webhook_subscriptions (
    tenant_id           TEXT   NOT NULL,
    id                  TEXT   NOT NULL,
    name                TEXT   NOT NULL,
    url                 TEXT   NOT NULL,
    description         TEXT   NOT NULL,
    events              TEXT   NOT NULL,
    visible_to          TEXT   NOT NULL, -- empty: no limit
    owners              TEXT   NOT NULL, -- also relations of the engine, as the viewers
    viewers             TEXT   NOT NULL,
    state               TEXT   NOT NULL,
    disabled_reason     TEXT   NOT NULL,
    secret              BLOB   NOT NULL, -- sealed
    previous_secret     BLOB   NOT NULL, -- sealed; empty: none
    previous_expires_at BIGINT NOT NULL,
    after_position      BIGINT NOT NULL, -- later events of the log are delivered
    until_position      BIGINT NOT NULL, -- of a disabled one: its last event; else the largest
    created_at          BIGINT NOT NULL,
    updated_at          BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
CREATE INDEX applications_by_claim_names ON applications (tenant_id, claim_names) WHERE claim_names <> '';
CREATE INDEX applications_by_creation ON applications (tenant_id, created_at, id) WHERE created_at > 0;
CREATE INDEX applications_by_entity_id ON applications (tenant_id, entity_id) WHERE entity_id <> '';
CREATE INDEX applications_by_source ON applications (source, created_at) WHERE source <> '';
CREATE INDEX applications_by_workload_issuers ON applications (tenant_id) WHERE workload_issuers <> '';
CREATE INDEX authorization_requests_by_expiry ON authorization_requests (expires_at);
CREATE INDEX authorizations_by_client ON authorizations (tenant_id, client_id);
CREATE INDEX client_assertions_by_expiry ON client_assertions (expires_at);
CREATE INDEX codes_by_expiry ON codes (expires_at);
CREATE INDEX dead_jobs_by_time ON dead_jobs (died_at);
CREATE INDEX device_codes_by_expiry ON device_codes (expires_at);
CREATE UNIQUE INDEX device_codes_by_user_code ON device_codes (tenant_id, user_hash);
CREATE INDEX dpop_proofs_by_expiry ON dpop_proofs (expires_at);
CREATE UNIQUE INDEX external_identities_by_user ON external_identities (tenant_id, user_id, connection_id);
CREATE INDEX external_ids_by_client ON external_ids (tenant_id, client_id, external_id, object_id) WHERE external_id <> '';
CREATE INDEX external_sessions_by_expiry ON external_sessions (expires_at);
CREATE INDEX external_sessions_by_provider_id ON external_sessions (tenant_id, connection_id, provider_id);
CREATE INDEX external_sessions_by_subject ON external_sessions (tenant_id, connection_id, subject);
CREATE INDEX federation_assertions_by_expiry ON federation_assertions (expires_at);
CREATE INDEX federation_connections_by_due ON federation_connections (check_at, tenant_id, id);
CREATE UNIQUE INDEX federation_connections_by_slug ON federation_connections (tenant_id, slug);
CREATE INDEX federation_tests_by_expiry ON federation_tests (expires_at);
CREATE INDEX grants_by_client ON grants (tenant_id, client_id, session_id);
CREATE INDEX grants_by_expiry ON grants (expires_at);
CREATE INDEX grants_by_name_id ON grants (tenant_id, client_id, name_id) WHERE name_id <> '';
CREATE INDEX grants_by_session ON grants (tenant_id, session_id);
CREATE INDEX grants_by_user ON grants (tenant_id, user_id, client_id);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (shard, expires_at);
CREATE INDEX jobs_by_due ON jobs (kind, due_at);
CREATE INDEX jobs_by_tenant ON jobs (kind, tenant_id, due_at);
CREATE INDEX known_devices_by_age ON known_devices (last_seen_at);
CREATE INDEX onetime_tokens_by_expiry ON onetime_tokens (expires_at);
CREATE INDEX onetime_tokens_by_user ON onetime_tokens (tenant_id, user_id) WHERE user_id <> '';
CREATE INDEX organization_invitations_by_expiry ON organization_invitations (expires_at, id) WHERE state = 'pending';
CREATE INDEX organization_invitations_by_time ON organization_invitations (org_id, created_at, id);
CREATE INDEX organization_invitations_by_token ON organization_invitations (token_hash) WHERE state = 'pending';
CREATE UNIQUE INDEX organization_invitations_pending ON organization_invitations (org_id, email_norm) WHERE state = 'pending';
CREATE INDEX organization_members_by_time ON organization_members (org_id, joined_at, id);
CREATE UNIQUE INDEX organization_members_by_user ON organization_members (user_id, org_id);
CREATE INDEX rate_limits_by_expiry ON rate_limits (shard, expires_at);
CREATE INDEX refresh_tokens_by_expiry ON refresh_tokens (expires_at);
CREATE INDEX refresh_tokens_by_predecessor ON refresh_tokens (tenant_id, predecessor) WHERE predecessor <> '';
CREATE INDEX relation_tuple_history_by_condition
    ON relation_tuple_history (tenant_id, object_type, condition, object_id, relation, subject_type, subject_id, subject_relation) WHERE condition <> '';
CREATE INDEX relation_tuple_history_by_subject
    ON relation_tuple_history (tenant_id, subject_type, subject_id, object_type, object_id, relation, subject_relation) WHERE relation <> '';
CREATE INDEX relation_tuple_history_newest
    ON relation_tuple_history (tenant_id, object_type, created_rev, object_id) WHERE relation = '';
CREATE INDEX relation_tuple_history_usersets
    ON relation_tuple_history (tenant_id, object_type, object_id, relation, subject_type, subject_id, subject_relation) WHERE subject_relation <> '';
CREATE INDEX relation_tuples_by_condition
    ON relation_tuples (tenant_id, object_type, condition, object_id, relation, subject_type, subject_id, subject_relation) WHERE condition <> '';
CREATE INDEX relation_tuples_by_expiry
    ON relation_tuples (tenant_id, expires_at) WHERE expires_at <> 0;
CREATE INDEX relation_tuples_by_subject
    ON relation_tuples (tenant_id, subject_type, subject_id, object_type, object_id, relation, subject_relation) WHERE relation <> '';
CREATE INDEX relation_tuples_newest
    ON relation_tuples (tenant_id, object_type, created_rev, object_id) WHERE relation = '';
CREATE INDEX relation_tuples_usersets
    ON relation_tuples (tenant_id, object_type, object_id, relation, subject_type, subject_id, subject_relation) WHERE subject_relation <> '';
CREATE INDEX revocations_by_change ON revocations (changed_at);
CREATE INDEX revocations_by_expiry ON revocations (expires_at);
CREATE UNIQUE INDEX saml_keys_active ON saml_keys (tenant_id, key_use) WHERE state = 'active';
CREATE INDEX saml_keys_due ON saml_keys (due_at);
CREATE UNIQUE INDEX saml_keys_next ON saml_keys (tenant_id, key_use) WHERE state = 'next';
CREATE INDEX saml_logouts_by_expiry ON saml_logouts (expires_at);
CREATE UNIQUE INDEX service_accounts_by_client ON service_accounts (client_id);
CREATE INDEX service_accounts_by_time ON service_accounts (org_id, created_at, id);
CREATE INDEX sessions_by_user ON sessions (tenant_id, user_id) WHERE user_id <> '';
CREATE UNIQUE INDEX signing_keys_active ON signing_keys (tenant_id, alg) WHERE state = 'active';
CREATE INDEX signing_keys_by_due_at ON signing_keys (due_at, kid);
CREATE UNIQUE INDEX signing_keys_next ON signing_keys (tenant_id, alg) WHERE state = 'next';
CREATE INDEX tenant_receipts_by_time
    ON tenant_receipts (tenant_id, committed_at);
CREATE INDEX tenants_by_age ON tenants (created_at, id);
CREATE INDEX tenants_by_organization ON tenants (org_id, created_at, id);
CREATE INDEX tenants_by_purge ON tenants (purge_at, id) WHERE purge_at > 0;
CREATE INDEX tenants_inactive ON tenants (id) WHERE state <> 'active';
CREATE UNIQUE INDEX trusted_issuers_by_issuer ON trusted_issuers (tenant_id, issuer);
CREATE INDEX user_groups_by_creation ON user_groups (tenant_id, created_at, id) WHERE created_at > 0;
CREATE UNIQUE INDEX user_groups_by_slug ON user_groups (tenant_id, slug) WHERE slug <> '';
CREATE INDEX user_imports_unfinished ON user_imports (tenant_id) WHERE finished_at = 0;
CREATE INDEX users_by_creation ON users (tenant_id, created_at, id) WHERE created_at > 0;
CREATE UNIQUE INDEX users_by_email ON users (tenant_id, email_norm) WHERE email_norm <> '';
CREATE INDEX users_by_state ON users (tenant_id, state, created_at, id) WHERE state <> '';
CREATE INDEX webhook_dead_letters_by_expiry ON webhook_dead_letters (tenant_id, subscription_id, expires_at);
CREATE INDEX webhook_dead_letters_by_id ON webhook_dead_letters (tenant_id, id);
CREATE INDEX webhook_dead_letters_by_state ON webhook_dead_letters (tenant_id, subscription_id, state, id);
CREATE INDEX webhook_deliveries_by_due ON webhook_deliveries (tenant_id, subscription_id, due_at, id) WHERE due_at > 0;
CREATE INDEX webhook_deliveries_by_id ON webhook_deliveries (tenant_id, id);
CREATE INDEX webhook_lanes_by_due ON webhook_lanes (due_at) WHERE paused_at = 0;
CREATE INDEX webhook_lanes_paused ON webhook_lanes (tenant_id) WHERE paused_at > 0;
INSERT INTO applications VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','client_roptvd65c2dsl4x2cdwy2fjab2','app_37wcebp2a2hz7oyyohabwwjkh7','bootstrap','m2m','enabled','me:read me:write users:read users:write groups:read groups:write applications:read applications:write federation:read federation:write resources:read resources:write webhooks:read webhooks:write settings:read settings:write scim:write audit:read','',3600,'ES256',X'6CA39EC4E4A41454F68CFE25D53B3EF48C3016EB7951D1256FE640E54D15640A',X'0000000000000000000000000000000000000000000000000000000000000000',0,1795599036159227,'','','',2592000,'','bootstrap

client_roptvd65c2dsl4x2cdwy2fjab2',1795599036159227,'',0,1795599036310192,'{"enabled":false,"allowed_audiences":[],"require_client_authentication":true,"act_as":{"enabled":false,"allowed_subject_types":["user"]},"subject_tokens":"any"}','{"profile":"default","first_party":true,"token_endpoint_auth_method":"client_secret_basic","backchannel_logout_session_required":false,"require_pushed_authorization_requests":false,"require_pkce":true,"dpop_bound_access_tokens":false,"id_token_signed_response_alg":"ES256","group_scopes":"all","authorization_signed_response_alg":"ES256","introspection_signed_response_alg":"ES256","require_signed_request_object":false,"introspect_all":false}','{"entity_id":"","acs_url":"","name_id_format":"","sign_response":false,"sign_assertion":false,"encrypt_assertion":false,"want_authn_requests_signed":false,"allow_idp_initiated":false}','','','','');
INSERT INTO applications VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','client_vewm3gyizh34x5msjnues3kk7y','app_5tg4exqkbgzatb6dgpqqgw6tv6','Notes','spa','enabled','openid offline_access','',3600,'ES256',X'0000000000000000000000000000000000000000000000000000000000000000',X'0000000000000000000000000000000000000000000000000000000000000000',0,1795599036535981,'','','https://notes.example.com/callback',2592000,'','notes

client_vewm3gyizh34x5msjnues3kk7y',1795599036535981,'client_roptvd65c2dsl4x2cdwy2fjab2',0,1795599036596701,'{"enabled":false,"allowed_audiences":[],"require_client_authentication":false,"act_as":{"enabled":false,"allowed_subject_types":["user"]},"subject_tokens":"any"}','{"profile":"default","first_party":true,"token_endpoint_auth_method":"none","backchannel_logout_session_required":false,"require_pushed_authorization_requests":false,"require_pkce":true,"dpop_bound_access_tokens":false,"id_token_signed_response_alg":"ES256","group_scopes":"all","authorization_signed_response_alg":"ES256","introspection_signed_response_alg":"ES256","require_signed_request_object":false,"introspect_all":false}','{"entity_id":"","acs_url":"","name_id_format":"","sign_response":false,"sign_assertion":false,"encrypt_assertion":false,"want_authn_requests_signed":false,"allow_idp_initiated":false}','','','','');
INSERT INTO applications VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','client_qq2ltpuor5bwretqxfeprms5z7','app_cekiikowdotutasnltfsugp42l','Wiki','saml','enabled','','',3600,'ES256',X'0000000000000000000000000000000000000000000000000000000000000000',X'0000000000000000000000000000000000000000000000000000000000000000',0,1795599036871769,'','','',2592000,'','wiki

client_qq2ltpuor5bwretqxfeprms5z7',1795599036871769,'client_roptvd65c2dsl4x2cdwy2fjab2',0,0,'{"enabled":false,"allowed_audiences":[],"require_client_authentication":false,"act_as":{"enabled":false,"allowed_subject_types":["user"]},"subject_tokens":"any"}','{"profile":"default","first_party":true,"token_endpoint_auth_method":"none","backchannel_logout_session_required":false,"require_pushed_authorization_requests":false,"require_pkce":true,"dpop_bound_access_tokens":false,"id_token_signed_response_alg":"ES256","group_scopes":"all","authorization_signed_response_alg":"ES256","introspection_signed_response_alg":"ES256","require_signed_request_object":false,"introspect_all":false}','{"entity_id":"https://wiki.example.com/saml","acs_url":"https://wiki.example.com/saml/acs","name_id_format":"persistent","sign_response":false,"sign_assertion":true,"encrypt_assertion":false,"want_authn_requests_signed":false,"allow_idp_initiated":false}','https://wiki.example.com/saml','','','');
INSERT INTO authorizations VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_kr3irzqtt6wix744lh3yrrltlt','client_vewm3gyizh34x5msjnues3kk7y','',1795599036593349,1795599036593349,'');
INSERT INTO backup_codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','4VdI3WtyJdnSO-Zi2w8Hk3OsEOcgW4Ml0wMnmduo6j0');
INSERT INTO backup_codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','LrpNgrqYbZLJSekEf7WPulKsZJnGKJRWUFQPLjh9eaE');
INSERT INTO backup_codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','SwX4hCuS78tkOzpbnUBQ4wzV1v0JRl2O5Tjr-ExggQY');
INSERT INTO backup_codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','T79EsIbeSZakiDm_9pA1ojuBV6mfp3DcpthzwebDj2Q');
INSERT INTO backup_codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','W9jSz2djaNSQ3n9DvqFQWatd5uisxPyKjn4QymBhtjQ');
INSERT INTO backup_codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','XevEC8bNZpCQd3FEzHFAXj1pNSfZcE43WKUdPg2EmQw');
INSERT INTO backup_codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','ZiD0Kt1ZjSjkP4uNigJU95dN0IaOPqBz2oHeIn4Lu68');
INSERT INTO backup_codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','hkHPzK4xtLw7Fzp1BGsPxzjqI36YiG8EPU5ecrG7O2c');
INSERT INTO backup_codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','iBIIm-LExUtHWEHeWY5qGXOUdtk-BWXWyXbIURZ-YKE');
INSERT INTO backup_codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','jp7w1DGqm7vCYc5d12kmRC4TrJzhveXvpyCrwYd6EAk');
INSERT INTO codes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','n3EUepjl2s8bwjtiTbx1gAoyenwPLEn9XXT7geQWqGA','gnt_o6srunnbpkljmmvw57taptci2v','client_vewm3gyizh34x5msjnues3kk7y','https://notes.example.com/callback','E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',1795599096593347,1795599036595647,'');
INSERT INTO directory_versions VALUES ('tenants',2);
INSERT INTO event_heads VALUES ('org_xirwlaxmldae6pqyapig3gecdt',3,0,0,0,0,0);
INSERT INTO event_heads VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',24,0,11,3,0,0);
INSERT INTO event_readers VALUES ('webhooks','tnt_stzpelanb2o6lzfp3b6zxqt5ky',25);
INSERT INTO events VALUES ('org_xirwlaxmldae6pqyapig3gecdt',1,'evt_62i2hlcmnt777x5xu4qu2prcbo','organization.created',1795599036158627,'{}','{"id":"org_xirwlaxmldae6pqyapig3gecdt","slug":"dev","name":"dev","state":"active","created_at":"2026-11-25T09:30:36.158Z","updated_at":"2026-11-25T09:30:36.158Z"}',0,0);
INSERT INTO events VALUES ('org_xirwlaxmldae6pqyapig3gecdt',2,'evt_nlonbbxkvqpqvwcqm4ep3yxwqr','tenant.created',1795599036159109,'{}','{"id":"tnt_stzpelanb2o6lzfp3b6zxqt5ky","org_id":"org_xirwlaxmldae6pqyapig3gecdt","slug":"dev","name":"dev","environment":"production","region":null,"state":"provisioning","base_url":"http://dev.localhost:8080","created_by":null,"created_at":"2026-11-25T09:30:36.158Z","updated_at":"2026-11-25T09:30:36.158Z","suspended_at":null,"suspend_reason":null,"decommissioned_at":null,"purge_at":null}',0,0);
INSERT INTO events VALUES ('org_xirwlaxmldae6pqyapig3gecdt',3,'evt_u6tetdpjb2wk5bkxys4vmzd32m','member.joined',1795599036297236,'{}','{"id":"mem_s2lpkcv6hogmibwb3ihxsnbzvf","org_id":"org_xirwlaxmldae6pqyapig3gecdt","user_id":"usr_zdwgx7xhphopavlftfnrolfi4v","email":"owner@dev.localhost","name":"Owner","role":"owner","mfa_enrolled":false,"joined_at":"2026-11-25T09:30:36.294Z","invited_by":null,"last_active_at":null}',0,0);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',1,'evt_wmkn3y53hi5rbh6cnmo7ekcgug','resource_type.created',1795599036315268,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_fd4qjywlvrwd5i7rwkhgahiblz","client_ip":"127.0.0.1"}','{"resource_type":{"actions":{},"conditions":[{"expression":"address.in_cidr(office)","name":"from_office","parameters":{"address":"ipaddress","office":"string"}}],"created_at":"2026-11-25T09:30:36.312Z","description":"","name":"folder","relations":[{"name":"owner","rewrites":[]},{"name":"viewer","rewrites":[{"kind":"this"},{"kind":"computed","relation":"owner"}]}],"updated_at":"2026-11-25T09:30:36.312Z"}}',3,0);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',2,'evt_trwvsrot2l4o3mjlzmofutz3pe','resource_type.created',1795599036315282,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_fd4qjywlvrwd5i7rwkhgahiblz","client_ip":"127.0.0.1"}','{"resource_type":{"actions":{},"conditions":[],"created_at":"2026-11-25T09:30:36.312Z","description":"","name":"document","relations":[{"name":"parent","rewrites":[],"subjects":["folder"]},{"name":"banned","rewrites":[]},{"name":"viewer","rewrites":[{"kind":"exclusion","base":{"kind":"union","children":[{"kind":"this"},{"kind":"tuple_to_userset","tupleset":"parent","computed":"viewer"}]},"subtract":{"kind":"computed","relation":"banned"}}]}],"updated_at":"2026-11-25T09:30:36.312Z"}}',3,0);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',3,'evt_e3qqja5jqkznqchujd45jr7uw6','resource.created',1795599036330796,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_f6sbamxodyeb4axc6pzab3ttop","client_ip":"127.0.0.1"}','{"resource":{"attributes":{"pages":3},"external_id":"plans/q1 draft","type":"document"}}',4,0);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',6,'evt_axghga7ppbu5igwjxsbtpsatjx','user.created',1795599036530276,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_e2fqszgvhy3h6naqbkmbffogns","client_ip":"127.0.0.1"}','{"user":{"id":"usr_kr3irzqtt6wix744lh3yrrltlt","email":"zoe@example.com","email_verified":true,"state":"active","name":null,"given_name":null,"family_name":null,"picture":null,"locale":null,"attributes":null,"password_set":true,"password_must_be_reset":false,"created_at":"2026-11-25T09:30:36.530Z","updated_at":"2026-11-25T09:30:36.530Z","last_signed_in_at":null},"source":"admin"}',6,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',7,'evt_7qcdtcnh2sfu6iefnuemfd7wzy','application.created',1795599036536395,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_xy3y3hk5gc6mpuaod6josmcej5","client_ip":"127.0.0.1"}','{"application":{"id":"app_5tg4exqkbgzatb6dgpqqgw6tv6","client_id":"client_vewm3gyizh34x5msjnues3kk7y","name":"Notes","description":"","type":"spa","state":"enabled","dynamically_registered":false,"created_at":"2026-11-25T09:30:36.535Z","updated_at":"2026-11-25T09:30:36.535Z","redirect_uris":["https://notes.example.com/callback"],"allowed_origins":[],"allowed_scopes":["openid","offline_access"],"tags":[],"grant_types":["authorization_code","refresh_token"],"audience":null,"access_token_ttl_s":3600,"refresh_token_ttl_s":2592000,"access_token_signing_alg":"ES256","token_exchange":{"enabled":false,"allowed_audiences":[],"require_client_authentication":false,"act_as":{"enabled":false,"allowed_subject_types":["user"]},"subject_tokens":"any"},"profile":"default","logo_uri":null,"first_party":true,"token_endpoint_auth_method":"none","jwks":null,"jwks_uri":null,"require_pushed_authorization_requests":false,"require_pkce":true,"dpop_bound_access_tokens":false,"require_dpop_nonce":false,"tls_client_certificate_bound_access_tokens":false,"tls_client_auth_subject_dn":null,"tls_client_auth_san_dns":null,"tls_client_auth_san_uri":null,"tls_client_auth_san_ip":null,"tls_client_auth_san_email":null,"id_token_signed_response_alg":"ES256","group_scopes":"all","authorization_signed_response_alg":"ES256","introspection_signed_response_alg":"ES256","userinfo_signed_response_alg":null,"token_endpoint_auth_signing_alg":null,"request_uris":[],"request_object_signing_alg":null,"require_signed_request_object":false,"post_logout_redirect_uris":[],"backchannel_logout_uri":null,"backchannel_logout_session_required":false,"frontchannel_logout_uri":null,"frontchannel_logout_session_required":false,"introspect_all":false,"claims":[],"workload_identities":[],"secret_last_rotated_at":null,"audit_summary":{"last_change_at":"2026-11-25T09:30:36.535Z","last_change_by":"client_roptvd65c2dsl4x2cdwy2fjab2","last_used_at":null},"can_rotate_secret":false,"can_disable":false,"can_delete":false}}',6,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',8,'evt_cnlwj3c3zt4duw6ufn44zrrk3z','user.signed_in',1795599036585812,'{"actor":{"type":"user","id":"usr_kr3irzqtt6wix744lh3yrrltlt"},"request_id":"req_swiqgmvwl67s2wvlwpjpcaphro","client_ip":"127.0.0.1"}','{"user":{"id":"usr_kr3irzqtt6wix744lh3yrrltlt","email":"zoe@example.com"},"amr":["pwd"]}',6,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',9,'evt_qlp4j3p2qxoay7daj6ovnozl2t','session.created',1795599036585834,'{"actor":{"type":"user","id":"usr_kr3irzqtt6wix744lh3yrrltlt"},"request_id":"req_swiqgmvwl67s2wvlwpjpcaphro","client_ip":"127.0.0.1"}','{"session":{"id":"ses_ts4yk4lgopvnfmsa4jfj6yj7pv","ip":"127.0.0.1","user_agent":"Go-http-client/1.1"},"user":{"id":"usr_kr3irzqtt6wix744lh3yrrltlt"}}',6,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',10,'evt_zhujabhxmb5st2lzf57475prm6','user.created',1795599036805908,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_nc6rkcdpwrtf2da3no6hn47low","client_ip":"127.0.0.1"}','{"user":{"id":"usr_nlcw5ltv7zf4ttrbuls77uyudn","email":"ann@example.com","email_verified":true,"state":"active","name":"Ann","given_name":null,"family_name":null,"picture":null,"locale":null,"attributes":{"desk":4},"password_set":true,"password_must_be_reset":false,"created_at":"2026-11-25T09:30:36.805Z","updated_at":"2026-11-25T09:30:36.805Z","last_signed_in_at":null},"source":"admin"}',6,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',11,'evt_fqghgzvpuwymyx4l4cxfvor62c','user.signed_in',1795599036839310,'{"actor":{"type":"user","id":"usr_nlcw5ltv7zf4ttrbuls77uyudn"},"request_id":"req_eew6fmf7gioimyf2phu3cgpfbz","client_ip":"127.0.0.1"}','{"user":{"id":"usr_nlcw5ltv7zf4ttrbuls77uyudn","email":"ann@example.com"},"amr":["pwd"]}',6,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',12,'evt_dypv54ycpnfpo33tjwdcysq7w5','session.created',1795599036839338,'{"actor":{"type":"user","id":"usr_nlcw5ltv7zf4ttrbuls77uyudn"},"request_id":"req_eew6fmf7gioimyf2phu3cgpfbz","client_ip":"127.0.0.1"}','{"session":{"id":"ses_g72sd4pw4b7plpum565d2ubglj","ip":"127.0.0.1","user_agent":"Go-http-client/1.1"},"user":{"id":"usr_nlcw5ltv7zf4ttrbuls77uyudn"}}',6,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',13,'evt_otsibqxhdchm6dln33ko3p6s6f','user.mfa_enrolled',1795599036850333,'{"actor":{"type":"user","id":"usr_nlcw5ltv7zf4ttrbuls77uyudn"},"client_id":"first-party","request_id":"req_22tzbtmoym4pdmwq7igq25ts7b","client_ip":"127.0.0.1"}','{"user":{"id":"usr_nlcw5ltv7zf4ttrbuls77uyudn","email":"ann@example.com"},"factor":{"id":"factor_xwid6ejuh2trl2la67vxn5csqy","kind":"totp","label":"App"}}',6,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',14,'evt_6lzqpkyt4wskt5f4i3eusnzcia','user.backup_codes_regenerated',1795599036856582,'{"actor":{"type":"user","id":"usr_nlcw5ltv7zf4ttrbuls77uyudn"},"client_id":"first-party","request_id":"req_7hlus6abouhufrvkoxgvyma7fo","client_ip":"127.0.0.1"}','{"user":{"id":"usr_nlcw5ltv7zf4ttrbuls77uyudn","email":"ann@example.com"}}',6,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',15,'evt_mt6cadjac6z2rajnzsfu36kldj','scope.created',1795599036860624,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_nchsejxjjl6g7yjubgd3prgfmy","client_ip":"127.0.0.1"}','{"scope":{"name":"notes:read","description":"Read notes","entitlement":"group","built_in":false,"created_at":"2026-11-25T09:30:36.858Z"}}',6,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',16,'evt_vuzdnphep3457vyuwikbstc6o3','group.created',1795599036863049,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_p4rk2ggl4fcpmm7mk4hwoqppfe","client_ip":"127.0.0.1"}','{"group":{"id":"grp_qlrnf3tfgex466zutwv34e7nfa","slug":"eng","name":"Engineering","description":"","scopes":["notes:read"],"member_count":0,"created_at":"2026-11-25T09:30:36.862Z"}}',7,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',17,'evt_wvc7igm577spbvrjzj6gkgerkg','group.member_added',1795599036866047,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_3bzct3ruetpp7gphtee42bnbdx","client_ip":"127.0.0.1"}','{"group":{"id":"grp_qlrnf3tfgex466zutwv34e7nfa","slug":"eng"},"user":{"id":"usr_nlcw5ltv7zf4ttrbuls77uyudn"}}',8,2);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',19,'evt_vwac6tdlywbxvcjt7nr4q37rly','federation.connection_created',1795599036869576,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_trour33k4gfnfpmlqijkvzbpkr","client_ip":"127.0.0.1"}','{"connection":{"id":"fed_p52p2ym7xyvevmvr5n5r4y3pik","slug":"google","kind":"social.google","name":"Google","state":"enabled","attribute_mapping":{},"group_mapping":[],"jit_provisioning":true,"link_policy":"verified_email","trust_email":false,"second_factor":"ask","domains":[],"client_id":"stonetown","client_secret_set":true,"scopes":["openid","profile","email"],"callback_url":"http://dev.localhost:8080/federation/google/callback","metadata_refreshed_at":null,"metadata_failing_since":null,"created_at":"2026-11-25T09:30:36.869Z","updated_at":"2026-11-25T09:30:36.869Z"}}',9,3);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',20,'evt_lyywlw4myjjqc6hcol5uknlegn','application.created',1795599036871998,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_p2modrb3uxlz5ticndayh3uhbo","client_ip":"127.0.0.1"}','{"application":{"id":"app_cekiikowdotutasnltfsugp42l","client_id":"client_qq2ltpuor5bwretqxfeprms5z7","name":"Wiki","description":"","type":"saml","state":"enabled","dynamically_registered":false,"created_at":"2026-11-25T09:30:36.871Z","updated_at":"2026-11-25T09:30:36.871Z","redirect_uris":[],"allowed_origins":[],"allowed_scopes":[],"tags":[],"grant_types":[],"audience":null,"access_token_ttl_s":3600,"refresh_token_ttl_s":2592000,"access_token_signing_alg":"ES256","token_exchange":{"enabled":false,"allowed_audiences":[],"require_client_authentication":false,"act_as":{"enabled":false,"allowed_subject_types":["user"]},"subject_tokens":"any"},"profile":"default","logo_uri":null,"first_party":true,"token_endpoint_auth_method":"none","jwks":null,"jwks_uri":null,"require_pushed_authorization_requests":false,"require_pkce":true,"dpop_bound_access_tokens":false,"require_dpop_nonce":false,"tls_client_certificate_bound_access_tokens":false,"tls_client_auth_subject_dn":null,"tls_client_auth_san_dns":null,"tls_client_auth_san_uri":null,"tls_client_auth_san_ip":null,"tls_client_auth_san_email":null,"id_token_signed_response_alg":"ES256","group_scopes":"all","authorization_signed_response_alg":"ES256","introspection_signed_response_alg":"ES256","userinfo_signed_response_alg":null,"token_endpoint_auth_signing_alg":null,"request_uris":[],"request_object_signing_alg":null,"require_signed_request_object":false,"post_logout_redirect_uris":[],"backchannel_logout_uri":null,"backchannel_logout_session_required":false,"frontchannel_logout_uri":null,"frontchannel_logout_session_required":false,"introspect_all":false,"claims":[],"workload_identities":[],"entity_id":"https://wiki.example.com/saml","acs_url":"https://wiki.example.com/saml/acs","name_id_format":"persistent","sign_response":false,"sign_assertion":true,"encrypt_assertion":false,"want_authn_requests_signed":false,"allow_idp_initiated":false,"secret_last_rotated_at":null,"audit_summary":{"last_change_at":"2026-11-25T09:30:36.871Z","last_change_by":"client_roptvd65c2dsl4x2cdwy2fjab2","last_used_at":null},"can_rotate_secret":false,"can_disable":false,"can_delete":false}}',9,3);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',21,'evt_ur6rmkcnqpxqv37phniabfhrst','tenant.settings_updated',1795599036876816,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_ashodfnjjkl6ny5devgsjvnuj3","client_ip":"127.0.0.1"}','{"settings":{"rate_limits":{},"password_policy":{"min_length":8,"max_length":128},"mfa_policy":{"mode":"optional","kinds":["sms","totp","webauthn"]},"session":{"idle_s":86400,"absolute_s":2592000},"sign_up":"open","require_verified_email":true,"dcr_mode":"open","dcr_require_pkce":true,"client_id_documents":"off","client_id_document_hosts":[],"require_state":true,"refresh_reuse_leeway_s":0,"refresh_family_max_s":7776000,"previous_secret_ttl_s":259200,"client_assertion_max_s":3600,"token_defaults":{"access_token_ttl_s":3600,"refresh_token_ttl_s":2592000},"trusted_origins":[]},"changes":{"dcr_mode":["off","open"]}}',9,3);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',22,'evt_frwbfa5422f3avsa6f2k57w6gr','webhook.subscription_created',1795599036878265,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_exw2ntmr6m5j6i45axvnglyljn","client_ip":"127.0.0.1"}','{"subscription":{"id":"whs_ehxdus5rqdsy3igvifnbvmz4g4","name":"hook","url":"http://127.0.0.1:40571","description":"","events":["group.created"],"visible_to":null,"owners":[],"viewers":[],"state":"enabled","disabled_reason":null,"failing_since":null,"last_success_at":null,"previous_secret_expires_at":null,"created_at":"2026-11-25T09:30:36.878Z","updated_at":"2026-11-25T09:30:36.878Z"}}',9,3);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',23,'evt_2nhurlbjzjgjs4qjrbojggue2h','group.created',1795599036879954,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_jx77ozrz3zngj6aamowg4snyyk","client_ip":"127.0.0.1"}','{"group":{"id":"grp_lcnpstj5fmbsvizllh3vwferbs","slug":"ops","name":"Operations","description":"","scopes":[],"member_count":0,"created_at":"2026-11-25T09:30:36.879Z"}}',10,3);
INSERT INTO events VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',24,'evt_jkqwevpljahaqqjoqgcdiykr7n','group.created',1795599036936382,'{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_f7hvmydpmqzgvekebl4ebqfgnb","client_ip":"127.0.0.1"}','{"group":{"id":"grp_5i23orvz5ursl4f4g5gs26k3qt","slug":"once","name":"Once","description":"","scopes":[],"member_count":0,"created_at":"2026-11-25T09:30:36.935Z"}}',11,3);
INSERT INTO factors VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','factor_xwid6ejuh2trl2la67vxn5csqy','totp','App',X'01C2D841FC0A3B39CCD08531242EF07CBB926586D8F769D9CB3C543244038D8BD91C3210B356BD4C7CB57A209026D7ECD7E9EE7A502282A4BB1F401559BFBC262F',59853301,1795599036850124,0);
INSERT INTO federation_connections VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','fed_p52p2ym7xyvevmvr5n5r4y3pik','google','social.google','Google','enabled','{"jit_provisioning":true,"link_policy":"verified_email","trust_email":false,"second_factor":"ask","client_id":"stonetown","scopes":["openid","profile","email"]}',X'01C2D841FCDAF350365AB9F8D4158DB3DD1FD9646CF6B51E3896F1430AC0D3A87D13581C4E',X'','{}','',4611686018427387903,0,1,1795599036869107,1795599036869107);
INSERT INTO goose_assertions VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_assertions VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_authn VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_authn VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_authn VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (6,5,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (7,6,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (8,7,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (9,8,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (10,9,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (11,10,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (12,11,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (13,12,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (14,13,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (15,14,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (16,15,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (17,16,1,'2026-11-25 09:30:35');
INSERT INTO goose_controlplane VALUES (18,17,1,'2026-11-25 09:30:35');
INSERT INTO goose_eventlog VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_eventlog VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_eventlog VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_eventlog VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_eventlog VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_eventlog VALUES (6,5,1,'2026-11-25 09:30:35');
INSERT INTO goose_external VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_external VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_external VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_external VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_external VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_external VALUES (6,5,1,'2026-11-25 09:30:35');
INSERT INTO goose_external VALUES (7,6,1,'2026-11-25 09:30:35');
INSERT INTO goose_factor VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_factor VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_factor VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_factor VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_federation VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_federation VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_federation VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_federation VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_federation VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_federation_signin VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_federation_signin VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_federation_signin VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_federation_signin VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_federation_signin VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_idempotency VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_idempotency VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_idempotency VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (6,5,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (7,6,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (8,7,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (9,8,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (10,9,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (11,10,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (12,11,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (13,12,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (14,13,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (15,14,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (16,15,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (17,16,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (18,17,1,'2026-11-25 09:30:35');
INSERT INTO goose_identity VALUES (19,18,1,'2026-11-25 09:30:35');
INSERT INTO goose_jobs VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_jobs VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_jobs VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_jobs VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_jobs VALUES (5,5,1,'2026-11-25 09:30:35');
INSERT INTO goose_jobs VALUES (6,6,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (6,5,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (7,6,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (8,7,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (9,8,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (10,9,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (11,10,1,'2026-11-25 09:30:35');
INSERT INTO goose_management VALUES (12,11,1,'2026-11-25 09:30:35');
INSERT INTO goose_masterkey VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_masterkey VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (6,5,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (7,6,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (8,7,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (9,8,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (10,9,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (11,10,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (12,11,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (13,12,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (14,13,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (15,14,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (16,15,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (17,16,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (18,17,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (19,18,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (20,19,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (21,20,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (22,21,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (23,22,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (24,23,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (25,24,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (26,25,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (27,26,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (28,27,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (29,28,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (30,29,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (31,30,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (32,31,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (33,32,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (34,40,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (35,41,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (36,42,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (37,43,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (38,50,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (39,51,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (40,60,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (41,70,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (42,71,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (43,72,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (44,80,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (45,90,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (46,91,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (47,92,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (48,93,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (49,94,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (50,100,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (51,101,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (52,102,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (53,103,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (54,104,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (55,105,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (56,106,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (57,107,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (58,108,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (59,109,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (60,110,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (61,111,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (62,112,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (63,130,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (64,131,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (65,132,1,'2026-11-25 09:30:35');
INSERT INTO goose_oauth VALUES (66,133,1,'2026-11-25 09:30:35');
INSERT INTO goose_onetime VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_onetime VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_onetime VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_onetime VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_ratelimit VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_ratelimit VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_ratelimit VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_resources VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_resources VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_samlkeys VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_samlkeys VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_samlkeys VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_samlkeys VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_samlkeys VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_session VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_session VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_session VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_session VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_session VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_session VALUES (6,5,1,'2026-11-25 09:30:35');
INSERT INTO goose_tenantkeys VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_tenantkeys VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (6,5,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (7,6,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (8,7,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (9,8,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (10,9,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (11,10,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (12,11,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (13,12,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (14,13,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (15,14,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (16,15,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (17,16,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (18,17,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (19,18,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (20,19,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (21,20,1,'2026-11-25 09:30:35');
INSERT INTO goose_tuplestore VALUES (22,21,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (1,0,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (2,1,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (3,2,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (4,3,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (5,4,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (6,5,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (7,6,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (8,7,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (9,8,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (10,9,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (11,10,1,'2026-11-25 09:30:35');
INSERT INTO goose_webhooks VALUES (12,11,1,'2026-11-25 09:30:35');
INSERT INTO grants VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','gnt_o6srunnbpkljmmvw57taptci2v','client_vewm3gyizh34x5msjnues3kk7y','usr_kr3irzqtt6wix744lh3yrrltlt','ses_ts4yk4lgopvnfmsa4jfj6yj7pv','openid offline_access','','','pwd',1795599036585410,0,1795599036593343,1803375036593343,0,'','','');
INSERT INTO idempotency_keys VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',X'ABD1B645BCF0B6D108858B65AA6311909947DFE0ACABACD41B5901C3DB2209B8',X'8E6EDE3158071AB61DE8CC70005EE06920BA5506F6A86270CA6435DFEAB9C514','VDWXFMQMZSAQXG46PWDGZLFXYH','WJV4U6JXUY5KHDOABVDJHVLJBR',1795599081934837,201,X'01C2D841FC5F4340E77B0FE086CE7F12D31ED823BFE0E7C511EFE081621C2877911C376C0F32CB7EF744C63EFD10DE61FBF79AC77003F270992632974CE52159530ED877295843E4B314C23720BFBE9FEEEAE04FC658C7D8F1361F2C8540688549DFCD983F956D50A61C5EC0AF54D50F43702C3523334C24C2D74AFC37D1C601B04D5A685CB9FEA2F642C61F6A546FF70401A6102E53DE1A2BFC8E89760035683679382096EA0F334D1EEDCA96A8D4CD0BFBC19268828FFCE0B1D5EF93050331C5F66EC4711E3E9DB873F92E838394FDEE4B1DD025081C1039116A7F4B44A1A1E8A90B0D93683EDB9993055DAD23FAD3B9BDC3D4018E28A626A75C376A37D3881506F4F474BE480E5958A7F51D9F4ED085FC29269849D1D6AA4FEEE7C6F51FB6467BAE0E3DD6C72006D0357AD03655C6C9C7B3E7B0B19B63DBF95D92F8CAD5339C8B77D45E0969C56995F931E40BA4CE176D7105CDD84B06425991D268FAE2CE6E584207B281B91FE6424029D00AD455489101ED596E4310833DA4B85DC0FE2104829377B584355FA3B50F2B772600FFB8C55A0F01ED59EE80B854D60F6914164DC75856106B37D9099392C914AB2C0B51C5DAD21A1562F3C11063DD54963F2ECEC6B122908C8D2DE9C6FDB7CB24C23800F3E1426B7CDA256F8E1D30062170822AAC975A43AE538FF05E1256C159F2E22EE7E32694AF04A876B047EC1E632A2429D53C7F413371DE3D5CAA77829763670C9E75A0FA49C9BC03ADEEDEF8101B26415661920E16D4DAAFDAA2143B36B58956A32ABEBBC4A7D8D8A84A4B73C3427A13F3785B09',11,1795685436934837);
INSERT INTO known_devices VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_kr3irzqtt6wix744lh3yrrltlt','d98a7109cd1f411f',1795599036585835);
INSERT INTO known_devices VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','d98a7109cd1f411f',1795599036839340);
INSERT INTO master_keys VALUES ('c2d841fc',1,X'01C2D841FC562BBD47912E14E0B3AA6CCB8ED9F573027E83ACE27571138564B5B9B4FFF8BEA037A9BD161964AC5C9B886CC924529DB5EFE5822CCDBB9C64E72E43',1795599035795885,0);
INSERT INTO oauth_settings VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','{"dcr_mode":"open","dcr_require_pkce":true,"client_id_documents":"off","require_state":true,"refresh_reuse_leeway_s":0,"refresh_family_max_s":7776000,"previous_secret_ttl_s":259200,"client_assertion_max_s":3600,"token_defaults":{"access_token_ttl_s":3600,"refresh_token_ttl_s":2592000}}');
INSERT INTO organization_members VALUES ('org_xirwlaxmldae6pqyapig3gecdt','mem_s2lpkcv6hogmibwb3ihxsnbzvf','usr_zdwgx7xhphopavlftfnrolfi4v','',1795599036294129);
INSERT INTO organizations VALUES ('org_xirwlaxmldae6pqyapig3gecdt','dev','dev',1795599036158463,1795599036158463);
INSERT INTO refresh_tokens VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','HikrYaL_pe_FtDy7tyD3jeVzJS1O_58JbHYqGoF03aA','gnt_o6srunnbpkljmmvw57taptci2v','client_vewm3gyizh34x5msjnues3kk7y',1795599036595898,1798191036595898,0,'','','');
INSERT INTO relation_tuple_history VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','folder','2026','viewer','user','gone','','','',0,5,1795599036337024,'client_roptvd65c2dsl4x2cdwy2fjab2',6);
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','document','plans/q1 draft','','','','','','',0,4,1795599036330730,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','document','plans/q1 draft','banned','user','eve','','','',0,5,1795599036337024,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','document','plans/q1 draft','parent','folder','2026','','','',0,5,1795599036337024,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','document','plans/q1 draft','viewer','user','eve','','','',0,5,1795599036337024,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','document','plans/q1 draft','viewer','user','late','','','',0,12,1795599036940214,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','folder','2026','','','','','','',0,5,1795599036337024,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','folder','2026','owner','user','ann','','','',0,5,1795599036337024,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','folder','2026','viewer','group','grp_qlrnf3tfgex466zutwv34e7nfa','member','','',0,9,1795599036868306,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','folder','2026','viewer','user','cid','','from_office','{"office":"192.0.2.0/24"}',3818447999000000,5,1795599036337024,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','user','usr_nsk6jk3cywv35o4rwekvrlnb3m','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','group','grp_5i23orvz5ursl4f4g5gs26k3qt','','','','','','',0,11,1795599036936359,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','group','grp_lcnpstj5fmbsvizllh3vwferbs','','','','','','',0,10,1795599036879935,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','group','grp_qlrnf3tfgex466zutwv34e7nfa','','','','','','',0,7,1795599036863007,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','group','grp_qlrnf3tfgex466zutwv34e7nfa','member','user','usr_nlcw5ltv7zf4ttrbuls77uyudn','','','',0,8,1795599036866028,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','applications:read','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','applications:read','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','applications:read','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','applications:write','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','applications:write','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','applications:write','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','audit:read','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','audit:read','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','audit:read','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','federation:read','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','federation:read','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','federation:read','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','federation:write','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','federation:write','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','federation:write','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','groups:read','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','groups:read','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','groups:read','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','groups:write','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','groups:write','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','groups:write','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','me:read','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','me:read','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','me:write','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','me:write','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','notes:read','','','','','','',0,7,1795599036863007,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','notes:read','holder','group','grp_qlrnf3tfgex466zutwv34e7nfa','member','','',0,7,1795599036863007,'client_roptvd65c2dsl4x2cdwy2fjab2');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','resources:read','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','resources:read','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','resources:read','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','resources:write','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','resources:write','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','resources:write','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','scim:write','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','scim:write','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','scim:write','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','settings:read','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','settings:read','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','settings:read','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','settings:write','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','settings:write','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','settings:write','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','users:read','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','users:read','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','users:read','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','users:write','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','users:write','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','users:write','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','webhooks:read','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','webhooks:read','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','webhooks:read','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','webhooks:write','','','','','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','webhooks:write','holder','application','client_roptvd65c2dsl4x2cdwy2fjab2','','','',0,2,1795599036194985,'');
INSERT INTO relation_tuples VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','scope','webhooks:write','holder','group','grp_5dsw5adg2t3od5r7g3jhvjlvhl','member','','',0,1,1795599036185462,'usr_nsk6jk3cywv35o4rwekvrlnb3m');
INSERT INTO relation_tuples VALUES ('tnt_system','organization','org_xirwlaxmldae6pqyapig3gecdt','','','','','','',0,3,1795599036297320,'');
INSERT INTO relation_tuples VALUES ('tnt_system','organization','org_xirwlaxmldae6pqyapig3gecdt','owner','user','usr_zdwgx7xhphopavlftfnrolfi4v','','','',0,3,1795599036297320,'');
INSERT INTO resource_attributes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','document','plans/q1 draft','{"pages":3}',1795599036329469);
INSERT INTO scopes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','notes:read','Read notes','group',1795599036858919);
INSERT INTO sessions VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','ses_g72sd4pw4b7plpum565d2ubglj','usr_nlcw5ltv7zf4ttrbuls77uyudn',X'1EF12A025F1A83832EC913BD61A111288981B7D5164A7610C8ED5B05586EC035','pwd otp mfa',1795599036850280,1795599036850280,0,1795599036839202,1795599036839202,1798191036839202,86400000000,'127.0.0.1','Go-http-client/1.1');
INSERT INTO sessions VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','ses_ts4yk4lgopvnfmsa4jfj6yj7pv','usr_kr3irzqtt6wix744lh3yrrltlt',X'3538C187DA803B64B13F9EBE1BEC59A8DB77F2CD3A20C90EDC2C2100FCD2668E','pwd',1795599036585410,0,0,1795599036585410,1795599036585410,1798191036585410,86400000000,'127.0.0.1','Go-http-client/1.1');
INSERT INTO signing_keys VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','KizbB_MLckyGP11HjRTgCC588h7twMBxAG4sAVZBMGU','ES256','active',X'01C2D841FC2A865E42CC80BDE5D964B55B1B002AAFA03F9A0ADC0F701DC24F8E0EB268728EA7959A0237D165A9129D14DF99C786542D2096F882A8223F90131A7CE6FB546457F0EA93175B2A9822DCDBE92C350D4548432D52906D99794F5DC11D14CB3A5B8239BF0488CB48B77F5139A1B6B651D3EC59D081DC2E32C28A9F00B61C183C7261FD020EA229973E17A1BA33B73864BC1CB7296FCF6277A459FF0A5AE85657F72F4832EB87EC',1795599036167671,1795599036167671,0,0,1803288576167671);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',1,'usr_nsk6jk3cywv35o4rwekvrlnb3m',1795599036185462,'[["scope","applications:read","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","applications:write","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","audit:read","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","federation:read","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","federation:write","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","groups:read","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","groups:write","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","me:read","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","me:write","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","resources:read","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","resources:write","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","scim:write","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","settings:read","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","settings:write","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","users:read","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","users:write","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","webhooks:read","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["scope","webhooks:write","holder","group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member"],["group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","member","user","usr_nsk6jk3cywv35o4rwekvrlnb3m",""],["group","grp_5dsw5adg2t3od5r7g3jhvjlvhl","","","",""],["scope","applications:read","","","",""],["scope","applications:write","","","",""],["scope","audit:read","","","",""],["scope","federation:read","","","",""],["scope","federation:write","","","",""],["scope","groups:read","","","",""],["scope","groups:write","","","",""],["scope","me:read","","","",""],["scope","me:write","","","",""],["scope","resources:read","","","",""],["scope","resources:write","","","",""],["scope","scim:write","","","",""],["scope","settings:read","","","",""],["scope","settings:write","","","",""],["scope","users:read","","","",""],["scope","users:write","","","",""],["scope","webhooks:read","","","",""],["scope","webhooks:write","","","",""]]','',0);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',2,'',1795599036194985,'[["scope","users:read","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","users:write","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","groups:read","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","groups:write","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","applications:read","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","applications:write","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","federation:read","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","federation:write","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","resources:read","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","resources:write","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","webhooks:read","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","webhooks:write","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","settings:read","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","settings:write","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","scim:write","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""],["scope","audit:read","holder","application","client_roptvd65c2dsl4x2cdwy2fjab2",""]]','',0);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',3,'client_roptvd65c2dsl4x2cdwy2fjab2',1795599036315177,'[]','',0);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',4,'client_roptvd65c2dsl4x2cdwy2fjab2',1795599036330730,'[["document","plans/q1 draft","","","",""]]','',0);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',5,'client_roptvd65c2dsl4x2cdwy2fjab2',1795599036337024,'[["folder","2026","owner","user","ann",""],["folder","2026","viewer","user","gone",""],["folder","2026","viewer","user","cid","",3818447999000000,"from_office","{\"office\":\"192.0.2.0/24\"}"],["document","plans/q1 draft","parent","folder","2026",""],["document","plans/q1 draft","viewer","user","eve",""],["document","plans/q1 draft","banned","user","eve",""],["folder","2026","","","",""]]','["evt_mkls34behledmzxkzvfk3inaft","relation.bulk_applied",{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_jtcawc3uvjtjxfpuqalexo3mam","client_ip":"127.0.0.1"},{"created":6,"updated":0,"deleted":0,"operations":[{"op":"create","result":"created","relation":"owner","resource":{"external_id":"2026","type":"folder"},"subject":{"id":"ann","type":"user"}},{"op":"create","result":"created","relation":"viewer","resource":{"external_id":"2026","type":"folder"},"subject":{"id":"gone","type":"user"}},{"op":"create","result":"created","condition":{"context":{"office":"192.0.2.0/24"},"name":"from_office"},"expires_at":"2090-12-31T23:59:59.000Z","relation":"viewer","resource":{"external_id":"2026","type":"folder"},"subject":{"id":"cid","type":"user"}},{"op":"create","result":"created","relation":"parent","resource":{"external_id":"plans/q1 draft","type":"document"},"subject":{"id":"2026","type":"folder"}},{"op":"create","result":"created","relation":"viewer","resource":{"external_id":"plans/q1 draft","type":"document"},"subject":{"id":"eve","type":"user"}},{"op":"create","result":"created","relation":"banned","resource":{"external_id":"plans/q1 draft","type":"document"},"subject":{"id":"eve","type":"user"}}]}]',1);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',6,'client_roptvd65c2dsl4x2cdwy2fjab2',1795599036338407,'[["folder","2026","viewer","user","gone","","-"]]','["evt_5253huud3h6jelb4cfppv3vkih","relation.deleted",{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_itaflheoiduldaqkbrbm6wkstm","client_ip":"127.0.0.1"},{"relation":{"relation":"viewer","resource":{"external_id":"2026","type":"folder"},"subject":{"id":"gone","type":"user"}}}]',2);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',7,'client_roptvd65c2dsl4x2cdwy2fjab2',1795599036863007,'[["scope","notes:read","holder","group","grp_qlrnf3tfgex466zutwv34e7nfa","member"],["group","grp_qlrnf3tfgex466zutwv34e7nfa","","","",""],["scope","notes:read","","","",""]]','',2);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',8,'client_roptvd65c2dsl4x2cdwy2fjab2',1795599036866028,'[["group","grp_qlrnf3tfgex466zutwv34e7nfa","member","user","usr_nlcw5ltv7zf4ttrbuls77uyudn",""]]','',2);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',9,'client_roptvd65c2dsl4x2cdwy2fjab2',1795599036868306,'[["folder","2026","viewer","group","grp_qlrnf3tfgex466zutwv34e7nfa","member"]]','["evt_ietzsf223picf23iwe7vlp426t","relation.created",{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_vom4w3xcof2lcw23r6jupxg2ko","client_ip":"127.0.0.1"},{"relation":{"relation":"viewer","resource":{"external_id":"2026","type":"folder"},"subject":{"id":"grp_qlrnf3tfgex466zutwv34e7nfa","type":"group"}}}]',3);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',10,'client_roptvd65c2dsl4x2cdwy2fjab2',1795599036879935,'[["group","grp_lcnpstj5fmbsvizllh3vwferbs","","","",""]]','',3);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',11,'client_roptvd65c2dsl4x2cdwy2fjab2',1795599036936359,'[["group","grp_5i23orvz5ursl4f4g5gs26k3qt","","","",""]]','',3);
INSERT INTO tenant_commits VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',12,'client_roptvd65c2dsl4x2cdwy2fjab2',1795599036940214,'[["document","plans/q1 draft","viewer","user","late",""]]','["evt_diqqldd6wxqblyvixf6c3xblrf","relation.created",{"actor":{"type":"application","id":"client_roptvd65c2dsl4x2cdwy2fjab2"},"client_id":"client_roptvd65c2dsl4x2cdwy2fjab2","request_id":"req_4w3aq2tegidctng22rynes2dfy","client_ip":"127.0.0.1"},{"relation":{"relation":"viewer","resource":{"external_id":"plans/q1 draft","type":"document"},"subject":{"id":"late","type":"user"}}}]',4);
INSERT INTO tenant_commits VALUES ('tnt_system',1,'',1795599035866877,'[]','',0);
INSERT INTO tenant_commits VALUES ('tnt_system',2,'',1795599035882025,'[]','',0);
INSERT INTO tenant_commits VALUES ('tnt_system',3,'',1795599036297320,'[["organization","org_xirwlaxmldae6pqyapig3gecdt","owner","user","usr_zdwgx7xhphopavlftfnrolfi4v",""],["organization","org_xirwlaxmldae6pqyapig3gecdt","","","",""]]','',0);
INSERT INTO tenant_heads VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','INYXQKZ677NIKE4RJZQKM6NFLH',12,3,0,4,0,1795599036940214);
INSERT INTO tenant_heads VALUES ('tnt_system','2363MV5MNLCLSK4LR4Y7KHJSOV',3,2,0,0,0,1795599036297320);
INSERT INTO tenant_receipts VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','VDWXFMQMZSAQXG46PWDGZLFXYH',X'49BAC4462865AA14CE0E2DAFD5025321E348B6960F3EF26B6CA76900F84B5718',11,'c',1795599036936359);
INSERT INTO tenant_schemas VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',3,X'7B227479706573223A5B7B226E616D65223A22666F6C646572222C2272656C6174696F6E73223A5B7B226E616D65223A226F776E6572222C227375626A65637473223A6E756C6C7D2C7B226E616D65223A22766965776572222C227265777269746573223A5B7B226B696E64223A2274686973227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D5D2C227375626A65637473223A6E756C6C7D5D2C22636F6E646974696F6E73223A5B7B226E616D65223A2266726F6D5F6F6666696365222C2265787072657373696F6E223A22616464726573732E696E5F63696472286F666669636529222C22706172616D6574657273223A5B7B226E616D65223A2261646472657373222C2274797065223A22697061646472657373227D2C7B226E616D65223A226F6666696365222C2274797065223A22737472696E67227D5D7D5D2C22637265617465645F6174223A22323032362D31312D32355430393A33303A33362E3331325A222C22757064617465645F6174223A22323032362D31312D32355430393A33303A33362E3331325A227D2C7B226E616D65223A22646F63756D656E74222C2272656C6174696F6E73223A5B7B226E616D65223A22706172656E74222C227375626A65637473223A5B22666F6C646572225D7D2C7B226E616D65223A2262616E6E6564222C227375626A65637473223A6E756C6C7D2C7B226E616D65223A22766965776572222C227265777269746573223A5B7B226B696E64223A226578636C7573696F6E222C2262617365223A7B226B696E64223A22756E696F6E222C226368696C6472656E223A5B7B226B696E64223A2274686973227D2C7B226B696E64223A227475706C655F746F5F75736572736574222C227475706C65736574223A22706172656E74222C22636F6D7075746564223A22766965776572227D5D7D2C227375627472616374223A7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2262616E6E6564227D7D5D2C227375626A65637473223A6E756C6C7D5D2C22637265617465645F6174223A22323032362D31312D32355430393A33303A33362E3331325A222C22757064617465645F6174223A22323032362D31312D32355430393A33303A33362E3331325A227D5D7D');
INSERT INTO tenant_schemas VALUES ('tnt_system',1,X'7B227479706573223A5B7B226E616D65223A226F7267616E697A6174696F6E222C226465736372697074696F6E223A224F776E732074656E616E74732E222C2272656C6174696F6E73223A5B7B226E616D65223A226F776E6572222C227375626A65637473223A5B2275736572222C226170706C69636174696F6E225D7D2C7B226E616D65223A2261646D696E222C227375626A65637473223A5B2275736572222C226170706C69636174696F6E225D7D2C7B226E616D65223A226F70657261746F72222C227375626A65637473223A5B2275736572222C226170706C69636174696F6E225D7D2C7B226E616D65223A22766965776572222C227375626A65637473223A5B2275736572222C226170706C69636174696F6E225D7D2C7B226E616D65223A2272656164222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2261646D696E227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F70657261746F72227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A22766965776572227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A226372656174655F74656E616E74222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2261646D696E227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A227570646174655F74656E616E74222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2261646D696E227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A2273757370656E645F74656E616E74222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2261646D696E227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F70657261746F72227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A226465636F6D6D697373696F6E5F74656E616E74222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A226D616E6167655F6D656D62657273222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2261646D696E227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A226D616E6167655F6F776E657273222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A227570646174655F6F7267616E697A6174696F6E222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D5D2C227375626A65637473223A6E756C6C7D5D2C22616374696F6E73223A7B226372656174655F74656E616E74223A226372656174655F74656E616E74222C226465636F6D6D697373696F6E5F74656E616E74223A226465636F6D6D697373696F6E5F74656E616E74222C226D616E6167655F6D656D62657273223A226D616E6167655F6D656D62657273222C226D616E6167655F6F776E657273223A226D616E6167655F6F776E657273222C2272656164223A2272656164222C2273757370656E645F74656E616E74223A2273757370656E645F74656E616E74222C227570646174655F6F7267616E697A6174696F6E223A227570646174655F6F7267616E697A6174696F6E222C227570646174655F74656E616E74223A227570646174655F74656E616E74227D2C22637265617465645F6174223A22323032362D31312D32355430393A33303A33352E3836365A222C22757064617465645F6174223A22323032362D31312D32355430393A33303A33352E3836365A227D5D7D');
INSERT INTO tenant_schemas VALUES ('tnt_system',2,X'7B227479706573223A5B7B226E616D65223A226F7267616E697A6174696F6E222C226465736372697074696F6E223A224F776E732074656E616E74732E222C2272656C6174696F6E73223A5B7B226E616D65223A226F776E6572222C227375626A65637473223A5B2275736572222C226170706C69636174696F6E225D7D2C7B226E616D65223A2261646D696E222C227375626A65637473223A5B2275736572222C226170706C69636174696F6E225D7D2C7B226E616D65223A226F70657261746F72222C227375626A65637473223A5B2275736572222C226170706C69636174696F6E225D7D2C7B226E616D65223A22766965776572222C227375626A65637473223A5B2275736572222C226170706C69636174696F6E225D7D2C7B226E616D65223A2272656164222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2261646D696E227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F70657261746F72227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A22766965776572227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A226372656174655F74656E616E74222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2261646D696E227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A227570646174655F74656E616E74222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2261646D696E227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A2273757370656E645F74656E616E74222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2261646D696E227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F70657261746F72227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A226465636F6D6D697373696F6E5F74656E616E74222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A226D616E6167655F6D656D62657273222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D2C7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A2261646D696E227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A226D616E6167655F6F776E657273222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A227570646174655F6F7267616E697A6174696F6E222C227265777269746573223A5B7B226B696E64223A22636F6D7075746564222C2272656C6174696F6E223A226F776E6572227D5D2C227375626A65637473223A6E756C6C7D5D2C22616374696F6E73223A7B226372656174655F74656E616E74223A226372656174655F74656E616E74222C226465636F6D6D697373696F6E5F74656E616E74223A226465636F6D6D697373696F6E5F74656E616E74222C226D616E6167655F6D656D62657273223A226D616E6167655F6D656D62657273222C226D616E6167655F6F776E657273223A226D616E6167655F6F776E657273222C2272656164223A2272656164222C2273757370656E645F74656E616E74223A2273757370656E645F74656E616E74222C227570646174655F6F7267616E697A6174696F6E223A227570646174655F6F7267616E697A6174696F6E222C227570646174655F74656E616E74223A227570646174655F74656E616E74227D2C22637265617465645F6174223A22323032362D31312D32355430393A33303A33352E3836365A222C22757064617465645F6174223A22323032362D31312D32355430393A33303A33352E3836365A227D2C7B226E616D65223A2274656E616E74222C226465736372697074696F6E223A22412074656E616E74206F6620616E206F7267616E69736174696F6E2E222C2272656C6174696F6E73223A5B7B226E616D65223A22706172656E74222C227375626A65637473223A5B226F7267616E697A6174696F6E225D7D2C7B226E616D65223A2272656164222C227265777269746573223A5B7B226B696E64223A227475706C655F746F5F75736572736574222C227475706C65736574223A22706172656E74222C22636F6D7075746564223A2272656164227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A227570646174655F74656E616E74222C227265777269746573223A5B7B226B696E64223A227475706C655F746F5F75736572736574222C227475706C65736574223A22706172656E74222C22636F6D7075746564223A227570646174655F74656E616E74227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A2273757370656E645F74656E616E74222C227265777269746573223A5B7B226B696E64223A227475706C655F746F5F75736572736574222C227475706C65736574223A22706172656E74222C22636F6D7075746564223A2273757370656E645F74656E616E74227D5D2C227375626A65637473223A6E756C6C7D2C7B226E616D65223A226465636F6D6D697373696F6E5F74656E616E74222C227265777269746573223A5B7B226B696E64223A227475706C655F746F5F75736572736574222C227475706C65736574223A22706172656E74222C22636F6D7075746564223A226465636F6D6D697373696F6E5F74656E616E74227D5D2C227375626A65637473223A6E756C6C7D5D2C22616374696F6E73223A7B226465636F6D6D697373696F6E5F74656E616E74223A226465636F6D6D697373696F6E5F74656E616E74222C2272656164223A2272656164222C2273757370656E645F74656E616E74223A2273757370656E645F74656E616E74222C227570646174655F74656E616E74223A227570646174655F74656E616E74227D2C22637265617465645F6174223A22323032362D31312D32355430393A33303A33352E3838315A222C22757064617465645F6174223A22323032362D31312D32355430393A33303A33352E3838315A227D5D7D');
INSERT INTO tenants VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','org_xirwlaxmldae6pqyapig3gecdt','dev','dev','http://dev.localhost:8080','dev.localhost','active',1795599036158847,'',0,'',0,0,'production','','',1795599036196667);
INSERT INTO user_groups VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','grp_5dsw5adg2t3od5r7g3jhvjlvhl','administrators','Administrators','Users who may do everything in this tenant.','administrators
administrators
users who may do everything in this tenant.','applications:read applications:write audit:read federation:read federation:write groups:read groups:write me:read me:write resources:read resources:write scim:write settings:read settings:write users:read users:write webhooks:read webhooks:write',1,1795599036182182,1795599036182182);
INSERT INTO user_groups VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','grp_5i23orvz5ursl4f4g5gs26k3qt','once','Once','','once
once
','',0,1795599036935808,1795599036935808);
INSERT INTO user_groups VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','grp_lcnpstj5fmbsvizllh3vwferbs','ops','Operations','','ops
operations
','',0,1795599036879558,1795599036879558);
INSERT INTO user_groups VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','grp_qlrnf3tfgex466zutwv34e7nfa','eng','Engineering','','eng
engineering
','notes:read',1,1795599036862677,1795599036866030);
INSERT INTO user_search VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',1795599036159137,'usr_nsk6jk3cywv35o4rwekvrlnb3m','admin@dev.localhost
administrator

');
INSERT INTO user_search VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',1795599036530128,'usr_kr3irzqtt6wix744lh3yrrltlt','zoe@example.com


');
INSERT INTO user_search VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky',1795599036805824,'usr_nlcw5ltv7zf4ttrbuls77uyudn','ann@example.com
ann


4');
INSERT INTO user_search VALUES ('tnt_system',1795599036159866,'usr_zdwgx7xhphopavlftfnrolfi4v','owner@dev.localhost
owner

');
INSERT INTO users VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_kr3irzqtt6wix744lh3yrrltlt','zoe@example.com','zoe@example.com',1,'active','','','','','','','$argon2id$v=19$m=19456,t=2,p=1$fgJey3gNhg3YQC7rV0yX/w$8weCitCtTl/xVCtHal4WeOXhkxVzzXToAKet0ybBmzg',0,1795599036530128,1795599036530128,1795599036585737,0,0,0);
INSERT INTO users VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nlcw5ltv7zf4ttrbuls77uyudn','ann@example.com','ann@example.com',1,'active','Ann','','','','','{"desk":4}','$argon2id$v=19$m=19456,t=2,p=1$aolWx3FDJmdsCIjNC/0q7Q$6m/WHQRS6iewircUFrYtguVkVQqqUT+870f8VtJJuuA',0,1795599036805824,1795599036805824,1795599036839284,0,0,0);
INSERT INTO users VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','usr_nsk6jk3cywv35o4rwekvrlnb3m','admin@dev.localhost','admin@dev.localhost',1,'active','Administrator','','','','','','$argon2id$v=19$m=19456,t=2,p=1$1TAWps+ldSycLHesYAJ0ow$xIwnG/Wi7Fas6aBhSepvZulicnzjjlY0kmQdc462uRs',0,1795599036159137,1795599036159137,0,0,0,0);
INSERT INTO users VALUES ('tnt_system','usr_zdwgx7xhphopavlftfnrolfi4v','owner@dev.localhost','owner@dev.localhost',1,'active','Owner','','','','','','$argon2id$v=19$m=19456,t=2,p=1$88k0WhVczIfkBeQK5FrZJg$EUvih0L58dT2qfu7JKzWyCuQczxtqCaQJfI7HnE5Jwg',0,1795599036159866,1795599036159866,0,0,0,0);
INSERT INTO webhook_deliveries VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','whs_ehxdus5rqdsy3igvifnbvmz4g4','whd_23ocd2pwiltnz7j5tmzep2myvq',23,'evt_2nhurlbjzjgjs4qjrbojggue2h','group.created','','',168,'retrying',1,'[{"number":1,"started_at":"2026-11-25T09:30:36.883Z","duration_ms":0,"status":404,"error":"status"}]','{"status":404,"headers":{"Content-Length":["19"],"Content-Type":["text/plain; charset=utf-8"],"Date":["Wed, 25 Nov 2026 09:30:36 GMT"],"X-Content-Type-Options":["nosniff"]},"body":"404 page not found\n","truncated":false}',1795599093616208,1795599036881695);
INSERT INTO webhook_deliveries VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','whs_ehxdus5rqdsy3igvifnbvmz4g4','whd_23ocd2pwkdome3muhhajsmzhqt',24,'evt_jkqwevpljahaqqjoqgcdiykr7n','group.created','','',163,'retrying',1,'[{"number":1,"started_at":"2026-11-25T09:30:36.938Z","duration_ms":0,"status":404,"error":"status"}]','{"status":404,"headers":{"Content-Length":["19"],"Content-Type":["text/plain; charset=utf-8"],"Date":["Wed, 25 Nov 2026 09:30:36 GMT"],"X-Content-Type-Options":["nosniff"]},"body":"404 page not found\n","truncated":false}',1795599102593125,1795599036937701);
INSERT INTO webhook_lanes VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','whs_ehxdus5rqdsy3igvifnbvmz4g4',1795599093616208,'',0,0,0,1795599036883951,0,0);
INSERT INTO webhook_subscriptions VALUES ('tnt_stzpelanb2o6lzfp3b6zxqt5ky','whs_ehxdus5rqdsy3igvifnbvmz4g4','hook','http://127.0.0.1:40571','','["group.created"]','','null','null','enabled','',X'01C2D841FC8234D3AF02778EF8313B027282308A724E59FB0AE745584671CE9453B27DA915BA8E32CF8B4B363C9B01A46C99E2862310F4A4EBBA1DC1B15F50676113C8E0E22DDD6ECF0C12EECDAF6DB75A0CE9',X'',0,22,4611686018427387903,1795599036878154,1795599036878154);
