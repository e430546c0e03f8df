package api_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"stonetown/api"
	"stonetown/controlplane"
	"stonetown/internal/eventlog"
	"stonetown/oauth/scope"
)

// scenarios test the API on every database. Each has a tenant of its own and is named by the
// promise that it tests.
var scenarios = map[string]func(*testing.T, *world, *client){
	"tokens_are_for_the_resources_that_are_named":              resourceIndicators,
	"anyone_registers_clients_where_it_is_open":                openRegistration,
	"clients_are_described_by_documents":                       clientDocuments,
	"an_agent_acts_within_relations":                           agentActs,
	"a_user_signs_in_at_a_provider":                            federatedSignIn,
	"an_identity_is_linked_with_a_proof":                       federatedLinking,
	"federated_sign_ins_are_refused":                           federatedRefusals,
	"a_connection_is_tested_without_a_session":                 connectionTests,
	"demands_of_applications_reach_the_provider":               federatedDemands,
	"a_sign_in_that_waits_ends_with_its_connection":            federatedSteps,
	"an_identity_is_unlinked_after_a_recent_sign_in":           unlinkingWithoutFactors,
	"an_application_names_a_connection":                        namedConnection,
	"users_sign_out_by_saml":                                   partnerLogout,
	"a_sign_out_leads_through_the_provider":                    federatedLogout,
	"logout_tokens_end_sessions":                               logoutTokens,
	"a_user_signs_in_by_saml":                                  samlSignIn,
	"a_nameid_is_linked_with_a_proof":                          samlLinking,
	"saml_responses_are_refused":                               samlRefusals,
	"a_new_key_of_saml_is_accepted":                            samlRollover,
	"a_saml_connection_has_metadata":                           samlMetadataOf,
	"a_saml_connection_is_tested":                              samlTests,
	"relations_lead_to_access":                                 firstSteps,
	"resource_types_come_back_as_defined":                      types,
	"invalid_types_are_refused_with_a_path":                    invalidTypes,
	"types_in_use_cannot_lose_relations":                       typeInUse,
	"several_types_change_together":                            typePlans,
	"invalid_changes_of_types_are_refused":                     typePlansRefused,
	"a_resource_has_one_relation_where_its_type_says_so":       singleValued,
	"deprecated_names_have_warnings":                           deprecations,
	"stored_assertions_judge_changes_of_types":                 storedAssertions,
	"invalid_assertions_are_not_stored":                        invalidAssertions,
	"a_change_of_types_is_made_once":                           repeatedTypes,
	"types_and_relations_get_new_names":                        renames,
	"pages_list_every_type_once":                               typePages,
	"deleting_a_resource_deletes_its_relations":                resourceLife,
	"pages_list_every_resource_once":                           resourcePages,
	"attributes_come_back_unchanged":                           attributes,
	"relations_are_written_once_and_deleted_once":              relations,
	"pages_list_every_relation_once":                           relationPages,
	"invalid_subjects_write_nothing":                           invalidSubjects,
	"checks_explain_their_answers":                             checks,
	"a_token_shows_its_write":                                  consistency,
	"questions_have_answers_of_an_earlier_time":                past,
	"questions_have_answers_under_assumptions":                 simulate,
	"a_history_names_the_writes_behind_a_decision":             checkHistory,
	"invalid_assumptions_are_refused":                          simulateRefused,
	"a_batch_answers_each_check":                               batch,
	"a_denial_names_sufficient_changes":                        denials,
	"a_batch_is_about_several_subjects":                        batchOfSeveral,
	"a_bulk_reports_each_operation":                            bulk,
	"a_failed_bulk_writes_nothing":                             bulkFailures,
	"conditions_decide_with_the_values_of_a_request":           conditions,
	"relations_end_when_they_expire":                           expiry,
	"relations_that_have_expired_are_refused":                  pastExpiry,
	"relations_of_a_subject_are_listed_and_deleted":            subjectRelations,
	"a_deletion_by_subject_is_bounded":                         manySubjectRelations,
	"relations_are_found_by_every_filter":                      relationFilters,
	"a_page_of_a_filter_is_bounded":                            boundedFilters,
	"a_bulk_has_preconditions":                                 preconditions,
	"all_and_self_decide_as_defined":                           newRewrites,
	"contextual_relations_apply_to_one_request":                contextual,
	"listed_resources_are_those_that_checks_allow":             listResources,
	"listed_subjects_are_those_that_checks_allow":              listSubjects,
	"a_list_answers_several_questions":                         listByQueries,
	"a_list_is_restricted_to_some_ids":                         listSome,
	"a_count_stops_at_its_limit":                               countResources,
	"listed_actions_are_those_that_checks_allow":               listActions,
	"proofs_are_listed_in_pages":                               listProofs,
	"expand_shows_the_tree_of_a_relation":                      expand,
	"a_user_is_created_changed_and_deleted":                    userLife,
	"invalid_users_are_refused":                                userForms,
	"users_are_found_by_every_filter":                          userSearch,
	"users_change_state_only_as_allowed":                       userStates,
	"a_group_is_created_changed_and_deleted":                   groupLife,
	"invalid_groups_are_refused":                               groupForms,
	"members_are_added_and_removed_once":                       groupMembers,
	"members_have_the_access_of_their_group":                   groupRelations,
	"relations_of_webhook_subscriptions_are_kept":              webhookRelations,
	"an_administrator_always_remains":                          administrators,
	"events_carry_users_and_groups_as_read":                    userEvents,
	"relations_are_imported_in_chunks":                         relationImports,
	"a_refused_import_of_relations_names_the_line":             relationImportsRefused,
	"an_import_of_relations_streams_both_ways":                 relationImportStreams,
	"chunks_of_an_import_of_relations_keep_their_order":        relationImportChunks,
	"imported_relations_equal_written_ones":                    relationImportsEqual,
	"an_import_reports_each_row":                               importUsers,
	"invalid_imports_are_refused":                              importRefused,
	"a_canceled_import_stops":                                  importCancelled,
	"a_password_signs_in":                                      passwordSignIn,
	"an_attack_on_a_password_is_reported":                      passwordAttack,
	"sessions_are_listed_and_ended":                            sessions,
	"a_session_cookie_serves_own_pages_only":                   sessionCookie,
	"users_change_their_own_profile":                           selfService,
	"an_account_without_password_refuses_passwords":            noPassword,
	"a_sign_up_ends_with_a_verified_address":                   signUp,
	"sign_up_does_not_reveal_accounts":                         signUpMails,
	"a_reset_link_sets_a_password_once":                        passwordReset,
	"an_authenticator_app_is_a_second_factor":                  authenticatorApp,
	"sensitive_operations_require_a_recent_factor":             assurance,
	"tenants_decide_about_second_factors":                      mfaPolicy,
	"a_text_message_is_a_second_factor":                        textMessages,
	"parallel_guesses_are_counted":                             parallelGuesses,
	"an_address_changes_when_the_new_one_is_verified":          emailChange,
	"reverting_an_address_removes_an_intruder":                 emailRevert,
	"links_are_described_without_being_followed":               mailedLinks,
	"the_password_policy_is_public":                            authPolicy,
	"every_token_states_its_lifetime":                          tokenLifetimes,
	"passkeys_sign_in":                                         passkeys,
	"independent_clients_sign_users_in":                        independentClient,
	"external_identities_are_listed_and_unlinked":              externalIdentities,
	"the_last_way_to_sign_in_stays":                            lastSignInMethod,
	"the_security_page_lists_identities":                       identityPage,
	"hosted_pages_are_closed_to_other_sites":                   hostedPages,
	"pages_and_messages_speak_the_language_of_the_user":        languages,
	"the_console_is_closed_to_others":                          consoleIsClosed,
	"a_form_of_the_console_acts_once":                          consoleActsOnce,
	"delicate_forms_of_the_console_require_a_recent_factor":    delicateForms,
	"the_console_of_the_control_plane_is_closed_to_others":     controlConsoleIsClosed,
	"the_audit_log_is_read_by_filter":                          auditEvents,
	"the_console_explains_every_decision":                      consoleExplains,
	"programs_that_open_links_change_nothing":                  pageLinks,
	"browsers_get_pages_for_errors":                            pageErrors,
	"sign_ins_in_two_tabs_are_separate":                        pageTabs,
	"the_consent_page_loads_the_logo_only":                     pagePictures,
	"a_code_is_redeemed_once":                                  authorizationCode,
	"sign_ins_are_bound_to_their_browser":                      pendingFlows,
	"acr_values_is_a_preference":                               contexts,
	"a_reused_refresh_token_ends_its_grant":                    refreshTokens,
	"a_leeway_tolerates_lost_responses":                        refreshLeeway,
	"a_family_of_refresh_tokens_ends":                          refreshFamily,
	"state_is_optional_where_the_tenant_says_so":               withoutState,
	"a_rotated_secret_stays_valid_for_a_while":                 previousSecrets,
	"clients_register_themselves":                              registration,
	"registration_is_off_by_default":                           registrationMode,
	"invalid_registrations_are_refused":                        registrationRefuses,
	"a_client_changes_its_metadata_only":                       clientChanges,
	"a_registered_client_gets_tokens_until_it_is_deleted":      registeredClient,
	"scopes_lead_to_the_standard_claims":                       standardClaims,
	"claims_of_applications_follow_the_engine":                 configuredClaims,
	"invalid_claims_of_applications_are_refused":               configuredClaimForms,
	"authorization_details_follow_the_engine":                  authorizationDetails,
	"scim_users_are_provisioned":                               scimUsers,
	"scim_groups_are_provisioned":                              scimGroups,
	"scim_rights_are_not_exceeded":                             scimRights,
	"scim_lists_are_filtered":                                  scimLists,
	"scim_bulk_resolves_references":                            scimBulk,
	"scim_requests_of_directories":                             scimDirectories,
	"fapi2_security_profile_final":                             fapi2,
	"request_objects_decide_and_are_signed":                    requestObjects,
	"request_objects_by_reference":                             requestObjectsByReference,
	"user_information_is_signed":                               signedUserInfo,
	"client_assertions_have_the_registered_alg":                assertionAlgs,
	"registered_clients_without_pkce":                          registeredWithoutPKCE,
	"claims_are_requested_one_by_one":                          claimsParameter,
	"claims_need_consent":                                      claimsWithConsent,
	"claims_ask_for_contexts":                                  claimsOfContexts,
	"authorization_responses_are_signed":                       signedResponses,
	"introspection_responses_are_signed":                       signedIntrospection,
	"oidf_basic_op":                                            basicOP,
	"oidf_form_post_op":                                        formPostOP,
	"oidf_config_op":                                           configOP,
	"oidf_rp_initiated_logout_op":                              rpInitiatedLogoutOP,
	"oidf_back_channel_logout_op":                              backchannelLogoutOP,
	"oidf_front_channel_logout_op":                             frontchannelLogoutOP,
	"oidf_dynamic_op":                                          dynamicOP,
	"applications_are_loaded_at_the_end_of_a_session":          frontchannelLogout,
	"proofs_need_a_nonce_of_the_server":                        dpopNonces,
	"wishes_of_registrations_are_kept_or_refused":              registeredWishes,
	"the_profile_of_an_application_fixes_its_settings":         profiles,
	"an_exchanged_token_has_at_most_the_rights_of_its_subject": tokenExchange,
	"token_exchange_follows_its_policy":                        exchangeRefuses,
	"delegation_requires_two_relations":                        actAs,
	"a_token_carries_at_most_the_users_scopes":                 entitlements,
	"third_party_applications_get_no_group_scopes":             groupScopesOfOthers,
	"revocation_ends_all_descendants":                          exchangedChains,
	"an_exchanged_token_ends_with_its_policy":                  exchangeLimits,
	"callers_give_only_rights_they_hold":                       grantersHold,
	"no_scope_leads_to_another":                                noGrowth,
	"a_limited_request_consumes_nothing":                       limitsComeFirst,
	"the_audience_cannot_change_after_authorization":           audienceAgain,
	"a_bound_token_requires_its_key":                           boundTokens,
	"codes_and_refresh_tokens_stay_bound":                      boundGrants,
	"token_exchange_keeps_the_binding":                         boundExchange,
	"a_proof_is_accepted_once":                                 proofs,
	"invalid_authorization_requests_are_refused":               authorizeRefuses,
	"introspection_tells_only_concerned_clients":               introspection,
	"consent_is_asked_once_and_revoked_at_once":                consent,
	"administrators_see_and_revoke_consent_in_the_console":     consoleConsents,
	"administrators_manage_users_in_the_console":               consoleUsers,
	"resources_are_managed_in_the_console":                     consoleResources,
	"groups_and_scopes_are_managed_in_the_console":             consoleGroups,
	"users_choose_the_account":                                 accountSelection,
	"applications_get_the_response_mode_they_ask_for":          applicationChoices,
	"a_device_gets_tokens_of_its_user":                         devices,
	"an_application_signs_its_user_out":                        logout,
	"applications_are_notified_of_ended_sessions":              backchannelLogout,
	"an_assertion_authenticates_once":                          privateKeyJWT,
	"published_keys_are_fetched_when_they_change":              publishedKeys,
	"a_workload_gets_tokens_of_an_application":                 workloadTokens,
	"assertions_of_workloads_are_refused":                      workloadRefusals,
	"a_trusted_issuer_is_created_changed_and_deleted":          trustedIssuers,
	"a_branding_is_read_changed_and_served":                    brandings,
	"pages_show_the_branding":                                  brandedPages,
	"texts_of_mails_are_replaced_previewed_and_sent":           mailTemplates,
	"a_breach_incident_is_opened_notified_and_closed":          breachIncidents,
	"a_sign_in_flow_is_drafted_published_and_rolled_back":      signInFlowLife,
	"invalid_sign_in_flows_are_refused":                        signInFlowForms,
	"actions_decide_within_their_effects":                      signInFlowActions,
	"claims_of_sign_ins_reach_first_parties_only":              signInFlowClaims,
	"a_sign_in_flow_is_part_of_every_sign_in":                  signInFlowPaths,
	"a_threat_feed_is_filled_changed_and_deleted":              threatFeeds,
	"a_threat_feed_is_fetched":                                 fetchedFeeds,
	"threat_feeds_are_compared_with_sign_ins":                  threatsAtSignIn,
	"a_report_is_saved_run_and_mailed":                         reports,
	"a_pushed_request_is_used_once":                            pushedRequests,
	"a_revoked_token_is_refused_at_once":                       revocation,
	"an_application_is_created_changed_and_deleted":            applicationLife,
	"invalid_applications_are_refused":                         applicationForms,
	"options_of_applications_come_back_as_set":                 applicationSetup,
	"a_deleted_scope_reaches_no_application":                   applicationScopeRace,
	"event_data_is_what_get_answers":                           eventDocuments,
	"events_hold_the_largest_changes":                          largestEvents,
	"a_remembered_browser_needs_no_factor":                     rememberedDevice,
	"a_new_device_is_reported":                                 newDevices,
	"breached_passwords_are_refused":                           breachedPasswords,
	"passwords_do_not_depend_on_the_breach_service":            breachedUnknown,
	"sessions_have_a_location":                                 sessionLocations,
	"a_scope_is_created_changed_and_deleted":                   scopeRegistry,
	"a_deleted_scope_reaches_no_group":                         scopeRace,
	"settings_take_effect_and_reset":                           tenantSettings,
	"signing_keys_are_listed_and_rotated":                      signingKeys,
	"saml_certificates_are_listed_and_rotated":                 samlCertificates,
	"relying_parties_follow_a_key_rotation":                    keyRotation,
	"id_tokens_use_the_algorithm_of_the_application":           idTokenAlgorithm,
	"tokens_from_before_a_restore_are_ignored":                 otherEpoch,
	"malformed_http_is_refused_in_the_form_of_the_api":         rawRequests,
	"a_watch_continues_where_it_ended":                         watch,
	"a_watch_of_decisions_names_who_gained_and_who_lost":       watchDecisions,
	"every_change_has_one_event":                               events,
	"events_are_in_the_order_of_effects":                       eventOrder,
	"authzen_decides_as_checks_do":                             authZEN,
	"only_questions_on_a_cycle_fail":                           exclusionCycles,
	"authzen_searches_as_lists_do":                             authZENSearch,
	"an_idempotency_key_executes_once":                         idempotencyKeys,
	"parallel_requests_with_one_key_execute_once":              idempotencyRace,
	"a_crashed_request_executes_once":                          idempotencyAfterDeath,
	"only_registered_origins_read_responses":                   webOrigins,
	"forged_headers_have_no_effect":                            forgedRequests,
	"any_text_can_be_an_external_id":                           externalIDs,
	"a_cursor_serves_its_own_list_only":                        cursors,
	"every_operation_requires_its_scope":                       access,
	"other_tenants_resources_do_not_exist":                     isolation,
	"tenants_are_served_in_their_state_only":                   tenantStates,
	"purged_tenants_leave_no_row":                              purgedTenants,
	"malformed_bodies_are_refused":                             malformed,
	"unknown_routes_are_errors_of_the_api":                     routing,
	"equivalent_requests_have_the_same_effect":                 requestForms,
	"an_absent_body_is_an_empty_object":                        withoutBody,
	"unusual_members_are_never_internal_errors":                strangeMembers,
	"unusual_parameters_are_never_internal_errors":             strangeParameters,
	"head_and_options_follow_http":                             strangeMethods,
	"responses_follow_the_contract":                            answerForms,
	"the_document_names_the_tenants_address":                   documentServer,
	"names_are_one_line":                                       oneLine,
	"the_token_endpoint_follows_rfc_6749":                      tokenEndpoint,
	"deliveries_are_signed":                                    signedDeliveries,
	"a_subscription_is_created_changed_and_deleted":            subscriptionLife,
	"invalid_subscriptions_are_refused":                        subscriptionForms,
	"event_types_are_those_of_the_document":                    eventTypes,
	"a_signing_secret_overlaps_the_previous_one":               secretRotation,
	"subscriptions_get_the_events_that_they_name":              eventPatterns,
	"failed_deliveries_are_listed_and_become_dead_letters":     failedAttempts,
	"a_dead_letter_is_replayed_or_dropped_once":                deadLetterRaces,
	"dead_letters_are_replayed_together":                       deadLetterReplays,
	"an_event_is_delivered_again_with_its_id":                  redeliveries,
	"a_delivery_has_six_attempts":                              exhaustedDeliveries,
	"a_tenant_has_a_hundred_subscriptions":                     subscriptionLimit,
	"suspended_tenants_get_no_deliveries":                      suspendedDeliveries,
	"owners_manage_their_subscriptions_only":                   relatedCallers,
	"a_subscription_sees_what_its_subject_sees":                visibleEvents,
	"a_connection_is_created_changed_and_deleted":              connectionLife,
	"invalid_connections_are_refused":                          connectionForms,
	"an_openid_provider_is_discovered":                         discoveredProvider,
	"saml_metadata_is_read_and_refreshed":                      samlProviders,
	"a_mapping_is_tried_without_a_sign_in":                     mappingPreview,
	"a_provider_is_set_by_callers_with_all_scopes":             connectionRights,
	"a_tenant_has_two_hundred_connections":                     connectionLimit,
	"saml_applications_sign_users_in":                          samlSignOn,
	"saml_assertions_state_what_is_configured":                 samlUsers,
	"saml_messages_of_others_are_refused":                      samlRefuses,
	"saml_attributes_need_consent":                             samlConsent,
	"saml_applications_require_second_factors":                 samlContexts,
	"saml_sign_ins_start_here_where_allowed":                   samlLaunch,
	"saml_applications_end_sessions":                           samlLogout,
	"a_sign_out_reaches_the_other_saml_applications":           samlSingleLogout,
	"a_sign_out_here_reaches_saml_applications":                samlSignOut,
	"saml_metadata_has_the_next_certificate":                   samlPublishes,
	"discovery_describes_the_endpoints":                        discovery,
	"organizations_are_created_and_renamed":                    organizations,
	"tenants_are_created_and_ended":                            managedTenants,
	"members_join_by_invitation":                               memberships,
	"consoles_are_opened_from_the_control_plane":               openConsole,
	"opened_sessions_end_with_their_reasons":                   openedSessions,
	"opened_sessions_give_no_account":                          openedAccounts,
	"service_accounts_act_by_their_role":                       serviceAccounts,
	"organizations_have_events":                                organizationEvents,
	"roles_permit_what_the_document_says":                      permissionMatrix,
	"errors_of_the_control_plane_have_one_form":                controlErrors,
	"requests_to_the_control_plane_are_done_once":              controlIdempotency,
	"unusual_requests_to_the_control_plane_are_refused":        strangeControl,
	"each_host_has_its_operations":                             servedHosts,
}

func TestConformance(t *testing.T) {
	for _, database := range slices.Sorted(maps.Keys(databases)) {
		t.Run(database, func(t *testing.T) {
			spans := newSpans(t)
			w := newWorld(t, databases[database](t), func(c *api.Config) { c.Tracer = spans.tracer })
			spans.plant(w.server)
			for _, name := range slices.Sorted(maps.Keys(scenarios)) {
				t.Run(name, func(t *testing.T) {
					scenarios[name](t, w, w.tenant(t, strings.ReplaceAll(name, "_", "-")))
				})
			}
			noSecrets(t, w)
			spans.noSecrets(t)
			if seen := catalogued(t, w); runsAll() && !t.Failed() {
				emitted(t, seen)
			}
		})
	}
	t.Run("faults", faults)
	t.Run("full_disk", fullDisk)
	t.Run("progress_of_plans", planProgress)
	if runsAll() && !t.Failed() {
		for _, d := range contracts() {
			for _, missing := range d.unseen() {
				t.Errorf("the document promises %s and no test has seen it", missing)
			}
		}
	}
}

// runsAll reports whether no scenario is left out by -run.
func runsAll() bool { return flag.Lookup("test.run").Value.String() == "" }

// secrets matches codes, tokens, client secrets and signing secrets.
var secrets = regexp.MustCompile(`\b(rt|ac|dc|cs|st|it|rat|bs)_[A-Za-z0-9_-]{43}|\bwhsec_[A-Za-z0-9+/]{43}=|\beyJ[A-Za-z0-9_-]{10,}\.eyJ`)

// noSecrets fails if there are secrets in the log, in events, or in rows that must hold
// hashes only.
func noSecrets(t *testing.T, w *world) {
	t.Helper()
	if found := secrets.FindString(w.log.String()); found != "" {
		t.Errorf("the log has %s", found)
	}
	for _, text := range []string{"events, data", "tenant_commits, event", "codes, hash", "refresh_tokens, hash", "applications, options", "device_codes, hash", "authorization_requests, id", "authorization_requests, request", "authorization_requests, browser", "sessions, id", "webhook_deliveries, history", "webhook_dead_letters, event", "federation_connections, settings", "organization_invitations, token_hash"} {
		table, column, _ := strings.Cut(text, ", ")
		rows, err := w.db.Query(t.Context(), `SELECT `+column+` FROM `+table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var value string
			if err := rows.Scan(&value); err != nil {
				t.Fatal(err)
			}
			if found := secrets.FindString(value); found != "" {
				t.Errorf("%s has %s", text, found)
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDocumentIsValid(t *testing.T) {
	for _, d := range contracts() {
		if err := d.doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
			t.Error(err)
		}
	}
}

// TestDocumentHasExamples requires an example of every request and response.
// TestDocumentIsValid validates them.
func TestDocumentHasExamples(t *testing.T) {
	missing := func(content openapi3.Content, format string, args ...any) {
		for name, media := range content {
			if media.Example == nil && len(media.Examples) == 0 {
				t.Errorf("%s %s has no example", fmt.Sprintf(format, args...), name)
			}
		}
	}
	for _, d := range contracts() {
		for _, item := range d.doc.Paths.Map() {
			for _, op := range item.Operations() {
				if op.RequestBody != nil {
					missing(op.RequestBody.Value.Content, "the request of %s", op.OperationID)
				}
				for status, response := range op.Responses.Map() {
					missing(response.Value.Content, "%s of %s", status, op.OperationID)
				}
			}
		}
	}
}

// split cuts a JSON array into the texts of its items.
func split(t testing.TB, array string) []string {
	t.Helper()
	var items []json.RawMessage
	if err := json.Unmarshal([]byte(array), &items); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, item := range items {
		texts = append(texts, string(item))
	}
	return texts
}

func parse(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// fields are the fields that a validation_failed names.
func fields(a answer) []string {
	var names []string
	list, _ := a.details()["field_errors"].([]any)
	for _, item := range list {
		names = append(names, item.(map[string]any)["field"].(string))
	}
	return names
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func firstSteps(t *testing.T, _ *world, c *client) {
	define(t, c)
	c.want(t, 201, "", "POST", "/api/v1/resources", resource("document", "q3"))
	relate(t, c, "folder", "reports", "viewer", object{"type": "group", "id": "staff"})
	relate(t, c, "document", "q3", "parent", object{"type": "folder", "id": "reports"})
	relate(t, c, "document", "q3", "owner", user("olga"))

	equal(t, "olga may view", allowed(t, c, user("olga"), "view", "document", "q3"), true)
	equal(t, "olga may publish", allowed(t, c, user("olga"), "publish", "document", "q3"), true)
	equal(t, "anna may view", allowed(t, c, user("anna"), "view", "document", "q3"), false)
	equal(t, "staff may view", allowed(t, c, object{"type": "group", "id": "staff"}, "view", "document", "q3"), true)
	equal(t, "staff may edit", allowed(t, c, object{"type": "group", "id": "staff"}, "edit", "document", "q3"), false)
}

func types(t *testing.T, _ *world, c *client) {
	in := split(t, documents)
	folder := c.want(t, 201, "", "POST", "/api/v1/resource-types", in[0])
	equal(t, "Location", folder.header.Get("Location"), "/api/v1/resource-types/folder")
	created := c.want(t, 201, "", "POST", "/api/v1/resource-types", in[1])
	if created.meta("consistency_token") == "" {
		t.Error("a write returns no consistency token")
	}
	read := c.want(t, 200, "", "GET", "/api/v1/resource-types/document", nil)
	equal(t, "what was read", read.data(), created.data())

	// GET answers the definition with its defaults.
	want := parse(t, in[1]).(map[string]any)
	want["conditions"] = []any{}
	for _, r := range want["relations"].([]any) {
		if r := r.(map[string]any); r["rewrites"] == nil {
			r["rewrites"] = []any{}
		}
	}
	got := maps.Clone(read.data())
	if got["created_at"] != got["updated_at"] {
		t.Errorf("a new type was updated: %v, %v", got["created_at"], got["updated_at"])
	}
	delete(got, "created_at")
	delete(got, "updated_at")
	equal(t, "the definition", got, want)

	replaced := c.want(t, 200, "", "POST", "/api/v1/resource-types", `{"name":"folder","relations":[{"name":"viewer"}]}`)
	equal(t, "created_at after a replacement", replaced.data()["created_at"], folder.data()["created_at"])
	equal(t, "relations after a replacement", replaced.data()["relations"], parse(t, `[{"name":"viewer","rewrites":[]}]`))
	equal(t, "actions after a replacement", replaced.data()["actions"], map[string]any{})

	open := c.want(t, 201, "", "POST", "/api/v1/resource-types", `{"name":"t","relations":[{"name":"r","subjects":[]},{"name":"s"}]}`)
	list := open.data()["relations"].([]any)
	equal(t, "a relation that allows nothing", list[0].(map[string]any)["subjects"], []any{})
	if _, ok := list[1].(map[string]any)["subjects"]; ok {
		t.Error("an open relation lists its subjects")
	}

	deleted := c.want(t, 204, "", "DELETE", "/api/v1/resource-types/t", nil)
	if deleted.header.Get("X-Consistency-Token") == "" {
		t.Error("a delete returns no consistency token")
	}
	gone := c.want(t, 404, "resource_type_not_found", "GET", "/api/v1/resource-types/t", nil)
	equal(t, "details", gone.details(), map[string]any{"type": "t"})
	c.want(t, 404, "resource_type_not_found", "DELETE", "/api/v1/resource-types/t", nil)
}

func invalidTypes(t *testing.T, _ *world, c *client) {
	for name, tc := range map[string]struct{ body, code, where string }{
		"no name":        {`{}`, "validation_failed", "name"},
		"upper case":     {`{"name":"Doc"}`, "validation_failed", "name"},
		"reserved":       {`{"name":"user"}`, "validation_failed", "name"},
		"duplicate":      {`{"name":"a","relations":[{"name":"r"},{"name":"r"}]}`, "validation_failed", "relations/1/name"},
		"wrong type":     {`{"name":7}`, "validation_failed", "name"},
		"deep type":      {`{"name":"a","relations":[{"name":"r","rewrites":[{"kind":[]}]}]}`, "validation_failed", "relations/0/rewrites/0/kind"},
		"action":         {`{"name":"a","actions":{"a.b":"no"}}`, "validation_failed", "actions/a.b"},
		"kind":           {`{"name":"a","relations":[{"name":"r","rewrites":[{"kind":"magic"}]}]}`, "rewrite_invalid", "relations/0/rewrites/0/kind"},
		"unknown":        {`{"name":"a","relations":[{"name":"r","rewrites":[{"kind":"computed","relation":"x"}]}]}`, "rewrite_invalid", "relations/0/rewrites/0/relation"},
		"no base":        {`{"name":"a","relations":[{"name":"r","rewrites":[{"kind":"exclusion"}]}]}`, "rewrite_invalid", "relations/0/rewrites/0/base"},
		"empty union":    {`{"name":"a","relations":[{"name":"r","rewrites":[{"kind":"union","children":[]}]}]}`, "rewrite_invalid", "relations/0/rewrites/0/children"},
		"paradox":        {`{"name":"a","relations":[{"name":"r","rewrites":[{"kind":"exclusion","base":{"kind":"this"},"subtract":{"kind":"computed","relation":"r"}}]}]}`, "rewrite_invalid", "relations/0/rewrites/0/subtract"},
		"member no list": {`{"name":"a","relations":{}}`, "validation_failed", "relations"},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.want(t, 400, tc.code, "POST", "/api/v1/resource-types", tc.body)
			if tc.code == "rewrite_invalid" {
				equal(t, "path", a.details()["path"], tc.where)
				if a.details()["reason"] == "" {
					t.Error("no reason")
				}
			} else {
				equal(t, "field", fields(a), []string{tc.where})
			}
		})
	}
}

func typeInUse(t *testing.T, _ *world, c *client) {
	define(t, c)
	relate(t, c, "document", "d", "banned", user("a"))
	a := c.want(t, 409, "resource_type_in_use", "POST", "/api/v1/resource-types", object{"name": "document"})
	equal(t, "details", a.details(), map[string]any{"type": "document", "relation": "banned", "count": 1.0})
	a = c.want(t, 409, "resource_type_in_use", "DELETE", "/api/v1/resource-types/document", nil)
	if a.details()["count"] == 0.0 {
		t.Errorf("count is missing: %s", a.text)
	}
	c.want(t, 204, "", "DELETE", path("document", "d"), nil)
	c.want(t, 204, "", "DELETE", "/api/v1/resource-types/document", nil)
	c.want(t, 204, "", "DELETE", "/api/v1/resource-types/folder", nil)
}

// pages follows a list to its end and returns a member of every item.
func pages(t *testing.T, c *client, target string, limit int, member func(map[string]any) string) []string {
	t.Helper()
	var all []string
	cursor := ""
	for n := 0; ; n++ {
		if n > 100 {
			t.Fatal("the list does not end")
		}
		a := c.want(t, 200, "", "GET", fmt.Sprintf("%s%slimit=%d%s", target, query(target), limit, cursor), nil)
		equal(t, "meta.limit", a.meta("limit"), float64(limit))
		items := a.list()
		for _, item := range items {
			all = append(all, member(item.(map[string]any)))
		}
		next, _ := a.meta("next_cursor").(string)
		if next == "" {
			return all
		}
		if len(items) != limit {
			t.Fatalf("a page of %d that is not the last, limit %d", len(items), limit)
		}
		cursor = "&cursor=" + next
	}
}

func query(target string) string {
	if strings.Contains(target, "?") {
		return "&"
	}
	return "?"
}

func typePages(t *testing.T, _ *world, c *client) {
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("t%d", i)
		c.want(t, 201, "", "POST", "/api/v1/resource-types", object{"name": name})
		want = append([]string{name}, want...)
	}
	byName := func(m map[string]any) string { return m["name"].(string) }
	for _, limit := range []int{1, 3, 7, 8, 250} {
		got := pages(t, c, "/api/v1/resource-types", limit, byName)
		slices.Sort(got) // several may share a millisecond, then the name decides
		equal(t, "types", got, slices.Sorted(slices.Values(want)))
	}
	equal(t, "default limit", c.want(t, 200, "", "GET", "/api/v1/resource-types", nil).meta("limit"), 50.0)
	for _, limit := range []string{"0", "251", "-1", "x", "1.5", "99999999999999999999", "", "5&limit=6"} {
		a := c.want(t, 400, "validation_failed", "GET", "/api/v1/resource-types?limit="+limit, nil)
		equal(t, "field", fields(a), []string{"limit"})
	}
}

func resourceLife(t *testing.T, _ *world, c *client) {
	define(t, c)
	created := c.want(t, 201, "", "POST", "/api/v1/resources", object{"type": "document", "external_id": "a b", "attributes": object{"n": 1}})
	equal(t, "Location", created.header.Get("Location"), "/api/v1/resources/document/a%20b")
	read := c.want(t, 200, "", "GET", created.header.Get("Location"), nil)
	equal(t, "what was read", read.data(), created.data())
	equal(t, "attributes", read.data()["attributes"], map[string]any{"n": 1.0})

	again := c.want(t, 200, "", "POST", "/api/v1/resources", resource("document", "a b"))
	equal(t, "attributes after a put without any", again.data()["attributes"], map[string]any{"n": 1.0})
	equal(t, "created_at", again.data()["created_at"], created.data()["created_at"])
	again = c.want(t, 200, "", "POST", "/api/v1/resources", object{"type": "document", "external_id": "a b", "attributes": object{"n": 2}})
	equal(t, "attributes after a put", again.data()["attributes"], map[string]any{"n": 2.0})

	target := path("document", "a b")
	patched := c.want(t, 200, "", "PATCH", target, object{"attributes": object{"m": []int{1, 2}}})
	equal(t, "attributes after a patch", patched.data()["attributes"], map[string]any{"m": []any{1.0, 2.0}})
	if patched.meta("consistency_token") == nil {
		t.Error("a patch returns no consistency token")
	}
	patched = c.want(t, 200, "", "PATCH", target, object{"unknown": true})
	equal(t, "attributes after a patch of nothing", patched.data()["attributes"], map[string]any{"m": []any{1.0, 2.0}})
	patched = c.want(t, 200, "", "PATCH", target, `{"attributes": null}`)
	equal(t, "attributes after null", patched.data()["attributes"], nil)

	immutable := c.want(t, 400, "immutable_field", "PATCH", target, object{"type": "document", "external_id": "a b", "attributes": object{}})
	equal(t, "fields", immutable.details()["fields"], []any{"type", "external_id"})

	relate(t, c, "document", "a b", "owner", user("u"))
	relate(t, c, "document", "child", "viewer", user("v"))
	c.want(t, 204, "", "DELETE", target, nil)
	c.want(t, 404, "resource_not_found", "GET", target, nil)
	c.want(t, 404, "resource_not_found", "DELETE", target, nil)
	c.want(t, 404, "resource_not_found", "PATCH", target, object{"attributes": nil})
	c.want(t, 404, "resource_not_found", "GET", target+"/relations", nil)
	c.want(t, 404, "resource_not_found", "POST", "/api/v1/resources/check", check(user("u"), "view", resource("document", "a b")))

	// The relations were deleted with the resource: a new resource of that id has none.
	c.want(t, 201, "", "POST", "/api/v1/resources", resource("document", "a b"))
	equal(t, "relations of the new resource", c.want(t, 200, "", "GET", target+"/relations", nil).list(), []any{})
	equal(t, "attributes of the new resource", c.want(t, 200, "", "GET", target, nil).data()["attributes"], nil)
	equal(t, "access to the new resource", allowed(t, c, user("u"), "view", "document", "a b"), false)

	c.want(t, 404, "resource_type_not_found", "POST", "/api/v1/resources", resource("nothing", "x"))
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		c.want(t, 404, "resource_type_not_found", method, path("nothing", "x"), object{"attributes": nil})
	}
	c.want(t, 404, "resource_type_not_found", "GET", "/api/v1/resources?type=nothing", nil)
	a := c.want(t, 400, "validation_failed", "GET", "/api/v1/resources", nil)
	equal(t, "field", fields(a), []string{"type"})
}

func resourcePages(t *testing.T, _ *world, c *client) {
	define(t, c)
	var want []string
	for i := range 9 {
		id := fmt.Sprintf("d%d", i)
		c.want(t, 201, "", "POST", "/api/v1/resources", object{"type": "document", "external_id": id, "attributes": object{"i": i}})
		want = append([]string{id}, want...)
	}
	c.want(t, 201, "", "POST", "/api/v1/resources", resource("folder", "not a document"))
	byID := func(m map[string]any) string { return m["external_id"].(string) }
	for _, limit := range []int{1, 3, 4, 9, 10} {
		equal(t, "resources", pages(t, c, "/api/v1/resources?type=document", limit, byID), want)
	}
}

func attributes(t *testing.T, _ *world, c *client) {
	define(t, c)
	put := func(attributes string) string {
		return `{"type":"document","external_id":"a","attributes":` + attributes + `}`
	}
	// The limit is 16 KiB of compact JSON.
	largest := `{"k":"` + long(16<<10-len(`{"k":""}`)) + `"}`
	c.want(t, 201, "", "POST", "/api/v1/resources", put(strings.Replace(largest, ":", "  :  ", 1)))
	a := c.want(t, 400, "validation_failed", "POST", "/api/v1/resources", put(strings.Replace(largest, `"}`, `x"}`, 1)))
	equal(t, "field", fields(a), []string{"attributes"})
	for _, wrong := range []string{`[]`, `"text"`, `1`, `true`} {
		a := c.want(t, 400, "validation_failed", "POST", "/api/v1/resources", put(wrong))
		equal(t, "field", fields(a), []string{"attributes"})
		c.want(t, 400, "validation_failed", "PATCH", path("document", "a"), `{"attributes":`+wrong+`}`)
	}
	for _, odd := range []string{`{}`, `{"__proto__":{"admin":true},"constructor":1}`, `{"n":12345678901234567890,"e":1e300}`, `{"nul":"\u0000","html":"<script>"}`} {
		c.want(t, 200, "", "PATCH", path("document", "a"), `{"attributes":`+odd+`}`)
		a := c.want(t, 200, "", "GET", path("document", "a"), nil)
		if !strings.Contains(a.text, odd) {
			t.Errorf("attributes %s came back as %s", odd, a.text)
		}
	}
}

func relations(t *testing.T, _ *world, c *client) {
	define(t, c)
	target := path("document", "d") + "/relations"
	created := c.want(t, 201, "", "POST", target, relation(user("u"), "viewer"))
	equal(t, "the relation", created.data(), map[string]any{
		"subject": user("u"), "relation": "viewer", "resource": resource("document", "d"),
	})
	c.want(t, 200, "", "POST", target, relation(user("u"), "viewer"))

	group := object{"type": "group", "id": "g"}
	created = c.want(t, 201, "", "POST", target, relation(group, "viewer"))
	equal(t, "a group", created.data()["subject"], group)
	// The members of a group and the group are one subject.
	c.want(t, 200, "", "POST", target, relation(object{"type": "group", "id": "g", "relation": "member"}, "viewer"))
	userset := object{"type": "folder", "id": "f/1", "relation": "viewer"}
	created = c.want(t, 201, "", "POST", target, relation(userset, "viewer"))
	equal(t, "a userset", created.data()["subject"], userset)
	c.want(t, 201, "", "POST", target, relation(user("*"), "viewer"))
	equal(t, "anyone", allowed(t, c, user("anyone"), "view", "document", "d"), true)

	list := c.want(t, 200, "", "GET", target, nil)
	for _, item := range list.list() {
		item := item.(map[string]any)
		if item["created_by"] == "" || item["created_at"] == "" {
			t.Errorf("origin is missing: %v", item)
		}
	}
	if len(list.list()) != 4 {
		t.Errorf("4 relations expected: %s", list.text)
	}
	if !strings.Contains(list.text, `{"id":"g","type":"group"}`) {
		t.Errorf("the group is not listed as people name it: %s", list.text)
	}

	c.want(t, 204, "", "DELETE", target, relation(user("*"), "viewer"))
	equal(t, "anyone", allowed(t, c, user("anyone"), "view", "document", "d"), false)
	c.want(t, 404, "relation_not_found", "DELETE", target, relation(user("*"), "viewer"))
	c.want(t, 404, "relation_not_found", "DELETE", path("document", "none")+"/relations", relation(user("u"), "viewer"))

	for _, method := range []string{"POST", "DELETE"} {
		c.want(t, 404, "resource_type_not_found", method, path("nothing", "d")+"/relations", relation(user("u"), "viewer"))
		a := c.want(t, 400, "relation_undefined", method, target, relation(user("u"), "nothing"))
		equal(t, "details", a.details(), map[string]any{"type": "document", "relation": "nothing"})
		a = c.want(t, 400, "validation_failed", method, target, object{})
		equal(t, "fields", fields(a), []string{"subject/type", "subject/id", "relation"})
		a = c.want(t, 400, "subject_invalid", method, target, relation(user(long(513)), "viewer"))
		equal(t, "details", a.details(), map[string]any{"reason": "id_length"})
	}
	c.want(t, 404, "resource_type_not_found", "GET", path("nothing", "d")+"/relations", nil)
	c.want(t, 400, "relation_undefined", "GET", target+"?relation=nothing", nil)
}

func relationPages(t *testing.T, _ *world, c *client) {
	define(t, c)
	want := map[string]bool{}
	for i := range 5 {
		for _, name := range []string{"owner", "viewer"} {
			relate(t, c, "document", "d", name, user(fmt.Sprintf("u%d", i)))
			want[fmt.Sprintf("%s u%d", name, i)] = true
		}
	}
	relate(t, c, "document", "e", "viewer", user("u0"))
	name := func(m map[string]any) string {
		return m["relation"].(string) + " " + m["subject"].(map[string]any)["id"].(string)
	}
	for _, limit := range []int{1, 4, 5, 10, 11} {
		got := pages(t, c, path("document", "d")+"/relations", limit, name)
		equal(t, "relations", got, slices.Sorted(maps.Keys(want)))
		got = pages(t, c, path("document", "d")+"/relations?relation=viewer", limit, name)
		equal(t, "viewers", got, []string{"viewer u0", "viewer u1", "viewer u2", "viewer u3", "viewer u4"})
	}
}

func invalidSubjects(t *testing.T, _ *world, c *client) {
	define(t, c)
	for name, tc := range map[string]struct {
		relation string
		subject  object
	}{
		"unknown type":       {"owner", object{"type": "nothing", "id": "x"}},
		"type not allowed":   {"banned", object{"type": "folder", "id": "x"}},
		"wildcard":           {"owner", user("*")},
		"wildcard userset":   {"viewer", object{"type": "group", "id": "*", "relation": "member"}},
		"undefined relation": {"viewer", object{"type": "folder", "id": "x", "relation": "nothing"}},
		"relation of a user": {"viewer", object{"type": "user", "id": "x", "relation": "friend"}},
		"derived relation":   {"reader", user("x")},
		"too long":           {"owner", user(long(513))},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.want(t, 400, "subject_invalid", "POST", path("document", "d")+"/relations", relation(tc.subject, tc.relation))
			if a.details()["reason"] == "" {
				t.Errorf("no reason: %s", a.text)
			}
		})
	}
	c.want(t, 404, "resource_not_found", "GET", path("document", "d"), nil) // nothing was registered on the way
}

func checks(t *testing.T, _ *world, c *client) {
	define(t, c)
	relate(t, c, "folder", "root", "owner", user("boss"))
	relate(t, c, "folder", "sub", "parent", object{"type": "folder", "id": "root"})
	relate(t, c, "document", "d", "parent", object{"type": "folder", "id": "sub"})
	relate(t, c, "document", "d", "banned", user("boss"))

	explained := c.want(t, 200, "", "POST", "/api/v1/resources/check", object{
		"subject": user("boss"), "action": "view", "resource": resource("document", "d"), "debug": true,
	})
	equal(t, "allowed", explained.data()["allowed"], true)
	reasons, _ := explained.data()["reasons"].([]any)
	if len(reasons) == 0 || !strings.Contains(explained.text, "tuple_to_userset") || !strings.Contains(explained.text, "document:d#parent@folder:sub") {
		t.Errorf("the reasons do not tell the path: %s", explained.text)
	}
	if plain := c.want(t, 200, "", "POST", "/api/v1/resources/check", check(user("boss"), "view", resource("document", "d"))); plain.data()["reasons"] != nil {
		t.Errorf("reasons without debug: %s", plain.text)
	}
	equal(t, "a reader who is banned", allowed(t, c, user("boss"), "reader", "document", "d"), false)
	equal(t, "delete means owner", allowed(t, c, user("boss"), "delete", "folder", "root"), true)

	c.want(t, 404, "resource_not_found", "POST", "/api/v1/resources/check", check(user("boss"), "view", resource("document", "x")))
	c.want(t, 404, "resource_type_not_found", "POST", "/api/v1/resources/check", check(user("boss"), "view", resource("nothing", "x")))
	c.want(t, 400, "relation_undefined", "POST", "/api/v1/resources/check", check(user("boss"), "fly", resource("document", "d")))
	c.want(t, 400, "subject_invalid", "POST", "/api/v1/resources/check", check(object{"type": "nothing", "id": "x"}, "view", resource("document", "d")))
	a := c.want(t, 400, "validation_failed", "POST", "/api/v1/resources/check", object{})
	equal(t, "fields", fields(a), []string{"subject/type", "subject/id", "resource/type", "resource/external_id", "action"})
	c.want(t, 400, "validation_failed", "POST", "/api/v1/resources/check", check(user("u"), "view", resource("document", "*")))
	c.want(t, 400, "validation_failed", "POST", "/api/v1/resources/check", check(user("nul\x00"), "view", resource("document", "d")))
}

func consistency(t *testing.T, w *world, c *client) {
	define(t, c)
	ask := func(extra object) object {
		body := check(user("u"), "view", resource("document", "d"))
		maps.Copy(body, extra)
		return body
	}
	written := relate(t, c, "document", "d", "viewer", user("u"))
	token := written.meta("consistency_token")
	seen := c.want(t, 200, "", "POST", "/api/v1/resources/check", ask(object{"consistency_token": token}))
	equal(t, "after the write", seen.data()["allowed"], true)

	gone := c.want(t, 204, "", "DELETE", path("document", "d")+"/relations", relation(user("u"), "viewer"))
	for _, extra := range []object{{"consistency": "full"}, {"consistency_token": gone.header.Get("X-Consistency-Token")}, {}} {
		a := c.want(t, 200, "", "POST", "/api/v1/resources/check", ask(extra))
		equal(t, "after the delete", a.data()["allowed"], false)
	}
	c.want(t, 200, "", "POST", "/api/v1/resources/check", ask(object{"consistency": "minimize_latency"}))

	other := w.tenant(t, "consistency-other")
	define(t, other)
	foreign := relate(t, other, "document", "d", "viewer", user("u")).meta("consistency_token")
	for _, wrong := range []object{
		{"consistency_token": "nonsense"},
		{"consistency_token": foreign},
		{"consistency": "eventual"},
		{"consistency": "full", "consistency_token": token},
	} {
		c.want(t, 400, "validation_failed", "POST", "/api/v1/resources/check", ask(wrong))
	}
}

func batch(t *testing.T, _ *world, c *client) {
	define(t, c)
	relate(t, c, "document", "d", "viewer", user("u"))
	item := func(action, typ, id string) object { return object{"action": action, "resource": resource(typ, id)} }
	ask := func(items ...object) object { return object{"subject": user("u"), "checks": items} }
	a := c.want(t, 200, "", "POST", "/api/v1/resources/check-batch", ask(
		item("view", "document", "d"), item("edit", "document", "d"), item("view", "document", "none"),
		item("fly", "document", "d"), item("view", "nothing", "d"), item("view", "document", "d"),
	))
	equal(t, "answers", a.list(), parse(t, `[{"allowed":true},{"allowed":false},{"allowed":false,"error":"resource_not_found"},
		{"allowed":false,"error":"relation_undefined"},{"allowed":false,"error":"resource_type_not_found"},{"allowed":true}]`))
	if a.meta("consistency_token") == "" {
		t.Error("a check returns no consistency token")
	}

	many := make([]object, 1000)
	for i := range many {
		many[i] = item("view", "document", []string{"d", "none"}[i%2])
	}
	a = c.want(t, 200, "", "POST", "/api/v1/resources/check-batch", ask(many...))
	if len(a.list()) != 1000 || a.list()[998].(map[string]any)["allowed"] != true {
		t.Errorf("1000 checks: %.200s", a.text)
	}
	a = c.want(t, 400, "bulk_too_large", "POST", "/api/v1/resources/check-batch", ask(append(many, many[0])...))
	equal(t, "details", a.details(), map[string]any{"max": 1000.0})

	c.want(t, 400, "validation_failed", "POST", "/api/v1/resources/check-batch", ask())
	a = c.want(t, 400, "validation_failed", "POST", "/api/v1/resources/check-batch", ask(item("view", "document", "d"), object{"resource": resource("document", "d\x00")}))
	equal(t, "fields", fields(a), []string{"checks/1/resource/external_id", "checks/1/action"})
	body := ask(many[0])
	body["subject"] = object{"type": "nothing", "id": "x"}
	c.want(t, 400, "subject_invalid", "POST", "/api/v1/resources/check-batch", body)
}

// op is one operation of a bulk write.
func op(op, typ, id, name string, subject object) object {
	return object{"op": op, "resource": resource(typ, id), "relation": name, "subject": subject}
}

func bulk(t *testing.T, _ *world, c *client) {
	define(t, c)
	relate(t, c, "document", "a", "viewer", user("old"))
	a := c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": []object{
		op("create", "document", "b", "viewer", user("new")),
		op("create", "document", "a", "viewer", user("old")),
		op("delete", "document", "a", "viewer", user("old")),
		op("create", "document", "a", "viewer", user("then")),
		op("delete", "document", "a", "viewer", user("then")),
	}})
	equal(t, "data", a.body["data"], parse(t, `{"applied":4,"results":[
		{"index":0,"op":"create","status":"created"},{"index":1,"op":"create","status":"exists"},{"index":2,"op":"delete","status":"deleted"},
		{"index":3,"op":"create","status":"created"},{"index":4,"op":"delete","status":"deleted"}]}`))
	equal(t, "new", allowed(t, c, user("new"), "view", "document", "b"), true)
	equal(t, "old", allowed(t, c, user("old"), "view", "document", "a"), false)

	full := make([]object, 500)
	for i := range full {
		full[i] = op("create", "document", fmt.Sprintf("x%d", i), "viewer", user("u"))
	}
	a = c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": full})
	equal(t, "applied", a.data()["applied"], 500.0)
	a = c.want(t, 400, "bulk_too_large", "POST", "/api/v1/resources/relations/bulk", object{"operations": append(full, full[0])})
	equal(t, "details", a.details(), map[string]any{"max": 500.0})
	c.want(t, 400, "validation_failed", "POST", "/api/v1/resources/relations/bulk", object{"operations": []object{}})
}

func bulkFailures(t *testing.T, _ *world, c *client) {
	define(t, c)
	first := op("create", "document", "d", "viewer", user("u"))
	for name, tc := range map[string]struct {
		status int
		code   string
		op     object
	}{
		"missing relation":   {404, "relation_not_found", op("delete", "document", "d", "owner", user("u"))},
		"unknown type":       {404, "resource_type_not_found", op("create", "nothing", "d", "owner", user("u"))},
		"undefined relation": {400, "relation_undefined", op("create", "document", "d", "nothing", user("u"))},
		"invalid subject":    {400, "subject_invalid", op("create", "document", "d", "owner", user("*"))},
		"unknown op":         {400, "validation_failed", op("upsert", "document", "d", "owner", user("u"))},
		"missing members":    {400, "validation_failed", object{"op": "create"}},
		"wildcard resource":  {400, "validation_failed", op("create", "document", "*", "owner", user("u"))},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.want(t, tc.status, tc.code, "POST", "/api/v1/resources/relations/bulk", object{"operations": []object{first, tc.op}})
			equal(t, "index", a.details()["index"], 1.0)
			equal(t, "code", a.details()["code"], tc.code)
		})
	}
	c.want(t, 404, "resource_not_found", "GET", path("document", "d"), nil) // nothing was applied
}

func externalIDs(t *testing.T, _ *world, c *client) {
	define(t, c)
	for _, id := range []string{
		"a/b", "/", "//", "a%2Fb", "%", "%25", "a b", " ", "+", "a+b", "ü-Ω-日本-🙂", "..", ".", "../../etc/passwd", "a/../b",
		"check", "relations/bulk", "?q=1#f", "a;b=c", "a,b", `"quoted"\`, "'; DROP TABLE tuples; --", "line\nbreak", "\t", "\x7f", "{x}", "$1", "a:b#c@d", "**",
		long(512), strings.Repeat("ü", 256),
	} {
		c.want(t, 201, "", "POST", "/api/v1/resources", resource("document", id))
		a := c.want(t, 200, "", "GET", path("document", id), nil)
		equal(t, "external_id", a.data()["external_id"], id)
		c.want(t, 201, "", "POST", path("document", id)+"/relations", relation(user(id), "viewer"))
		equal(t, "check "+id, allowed(t, c, user(id), "view", "document", id), true)
		list := c.want(t, 200, "", "GET", path("document", id)+"/relations", nil).list()
		equal(t, "subject", list[0].(map[string]any)["subject"], map[string]any{"type": "user", "id": id})
		c.want(t, 204, "", "DELETE", path("document", id)+"/relations", relation(user(id), "viewer"))
		c.want(t, 204, "", "DELETE", path("document", id), nil)
	}
	// One more byte is refused, as is text that a database cannot store.
	for _, escaped := range []string{"%00", "a%00b", "%ff", "%C3%28", "*", "%2A", long(513), strings.Repeat("%C3%BC", 257)} {
		target := "/api/v1/resources/document/" + escaped
		for _, method := range []string{"GET", "DELETE"} {
			c.want(t, 400, "validation_failed", method, target, nil)
		}
		c.want(t, 400, "validation_failed", "PATCH", target, object{"attributes": object{}})
		c.want(t, 400, "validation_failed", "GET", target+"/relations", nil)
		c.want(t, 400, "validation_failed", "POST", target+"/relations", relation(user("u"), "viewer"))
		c.want(t, 400, "validation_failed", "DELETE", target+"/relations", relation(user("u"), "viewer"))
	}
	for _, body := range []any{resource("document", ""), resource("document", "*"), resource("document", long(513)), resource("document", "\x00"), object{}} {
		c.want(t, 400, "validation_failed", "POST", "/api/v1/resources", body)
	}
	c.want(t, 404, "not_found", "GET", "/api/v1/resources/document/", nil)
	c.want(t, 404, "not_found", "GET", "/api/v1/resources/document/a/b", nil)
}

func cursors(t *testing.T, w *world, c *client) {
	define(t, c)
	for i := range 3 {
		c.want(t, 201, "", "POST", "/api/v1/resources", resource("document", fmt.Sprint(i)))
		c.want(t, 201, "", "POST", "/api/v1/resources", resource("folder", fmt.Sprint(i)))
		relate(t, c, "document", "0", "viewer", user(fmt.Sprint(i)))
	}
	next := func(target string) string {
		return c.want(t, 200, "", "GET", target+query(target)+"limit=1", nil).meta("next_cursor").(string)
	}
	types, list, rels := "/api/v1/resource-types", "/api/v1/resources?type=document", path("document", "0")+"/relations"
	cursor := next(list)
	c.want(t, 200, "", "GET", list+"&limit=2&cursor="+cursor, nil) // another limit is no other list

	other := w.tenant(t, "cursors-other")
	define(t, other)
	refuse := func(c *client, target, cursor string) {
		t.Helper()
		c.want(t, 400, "cursor_invalid", "GET", target+query(target)+"cursor="+cursor, nil)
	}
	refuse(other, list, cursor)                               // another tenant
	refuse(c, "/api/v1/resources?type=folder", cursor)        // other filters
	refuse(c, types, cursor)                                  // another list
	refuse(c, rels, cursor)                                   // another list
	refuse(c, rels+"?relation=viewer", next(rels))            // a filter added
	refuse(c, path("document", "1")+"/relations", next(rels)) // another resource
	refuse(c, types, next(rels))
	for _, forged := range []string{"x", "AAAA", long(20000), cursor + "A", cursor[1:], strings.Repeat("A", len(cursor)), "%00", "'%20OR%201=1--"} {
		refuse(c, list, forged)
	}
	for i := range cursor {
		flipped := []byte(cursor)
		if flipped[i] != 'A' {
			flipped[i] = 'A'
			refuse(c, list, string(flipped))
		}
	}
}

// targets are the paths of the document with values for their variables.
func targets(id string) map[string][]string {
	fill := strings.NewReplacer("{name}", "document", "{type}", "document", "{external_id}", id)
	found := map[string][]string{}
	for path, item := range document().doc.Paths.Map() {
		for method := range item.Operations() {
			found[fill.Replace(path)] = append(found[fill.Replace(path)], method)
		}
	}
	return found
}

// body returns a body that every operation accepts.
var body = object{
	"name": "document", "type": "document", "external_id": "d", "relation": "viewer", "action": "view",
	"subject": user("u"), "resource": resource("document", "d"), "subject_type": "user",
	"checks":     []object{{"action": "view", "resource": resource("document", "d")}},
	"operations": []object{op("create", "document", "d", "viewer", user("u"))},
}

// access calls every operation of the document without the required scope.
func access(t *testing.T, w *world, c *client) {
	define(t, c)
	relate(t, c, "document", "d", "viewer", user("u"))
	other := w.tenant(t, "access-other")
	without := map[string]*client{} // every scope but one
	elsewhere := w.application(t, c, "resources:read", "resources:write")
	tried := 0
	for target, methods := range targets("d") {
		for _, method := range methods {
			required := scopeOf(t, method, target)
			if required == "" || target == authPath+"/session" || target == authPath+"/flows/{flow_id}" { // accepts requests without a token
				continue
			}
			tried++
			a := c.with("").want(t, 401, "unauthenticated", method, target, body)
			equal(t, "challenge", a.header.Get("WWW-Authenticate"), `Bearer realm="`+c.base()+`", resource_metadata="`+c.base()+`/.well-known/oauth-protected-resource"`)
			for name, token := range map[string]string{
				"garbage": "garbage", "another tenant's": other.token, "cut": c.token[:len(c.token)-2], "with a space": c.token + " x",
				"unsigned": "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0." + strings.Split(c.token, ".")[1] + ".",
			} {
				a := c.with(token).want(t, 401, "invalid_token", method, target, body)
				if !strings.Contains(a.header.Get("WWW-Authenticate"), `error="invalid_token"`) || strings.Contains(a.text, token) {
					t.Errorf("%s %s, token %s: %v %s", method, target, name, a.header, a.text)
				}
			}
			if without[required] == nil {
				others := slices.DeleteFunc(slices.Clone(scope.Builtin), func(s string) bool { return s == required })
				without[required] = c.with(w.token(t, c, w.application(t, c, others...)))
			}
			if method+target == "GET"+subscriptionsPath { // lists what the caller may read
				equal(t, "list", without[required].want(t, 200, "", method, target, body).list(), []any{})
				continue
			}
			a = without[required].want(t, 403, "insufficient_scope", method, target, body)
			equal(t, "required_scope", a.details()["required_scope"], required)
			equal(t, "challenge", a.header.Get("WWW-Authenticate"),
				`Bearer realm="`+c.base()+`", resource_metadata="`+c.base()+`/.well-known/oauth-protected-resource", error="insufficient_scope", scope="`+required+`"`)
			h := http.Header{"Authorization": {"Bearer " + c.token, "Bearer " + c.token}}
			equal(t, "two tokens", c.send(t, method, target, h, nil).code(), "invalid_token")
			h = basic(elsewhere.id, elsewhere.secret)
			equal(t, "Basic", c.send(t, method, target, h, nil).code(), "invalid_token")
		}
	}
	if tried < 15 {
		t.Errorf("only %d operations need a token", tried)
	}
}

// scopeOf is the scope that the document demands.
func scopeOf(t *testing.T, method, target string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	route, _, err := document().router.FindRoute(req)
	if err != nil {
		t.Fatal(err)
	}
	if route.Operation.Security == nil {
		t.Fatalf("%s %s says nothing about security", method, target)
	}
	for _, requirement := range *route.Operation.Security {
		if scopes := requirement["bearer"]; len(scopes) == 1 {
			return scopes[0]
		}
	}
	return ""
}

// isolation looks for another tenant's resource with every operation: it must
// be as if it had never existed.
func isolation(t *testing.T, w *world, c *client) {
	define(t, c)
	other := w.tenant(t, "isolation-other")
	define(t, other)
	relate(t, other, "document", "theirs", "viewer", user("u"))
	theirs := maps.Clone(body)
	delete(theirs, "type")
	delete(theirs, "external_id")
	for target, methods := range targets("theirs") {
		if !strings.Contains(target, "theirs") {
			continue
		}
		for _, method := range methods {
			if method == "POST" {
				continue // creates
			}
			there := c.do(t, method, target, theirs)
			nowhere := c.do(t, method, strings.Replace(target, "theirs", "nobody", 1), theirs)
			hide := strings.NewReplacer(there.header.Get("X-Request-Id"), "", nowhere.header.Get("X-Request-Id"), "", "theirs", "", "nobody", "")
			if there.status != 404 || hide.Replace(there.text) != hide.Replace(nowhere.text) {
				t.Errorf("%s %s: %d %s, want what an absent one gives: %d %s", method, target, there.status, there.text, nowhere.status, nowhere.text)
			}
		}
	}
	c.want(t, 404, "resource_not_found", "POST", "/api/v1/resources/check", check(user("u"), "view", resource("document", "theirs")))
	equal(t, "list", c.want(t, 200, "", "GET", "/api/v1/resources?type=document", nil).list(), []any{})
	equal(t, "theirs", allowed(t, other, user("u"), "view", "document", "theirs"), true)
}

// forPeople reports whether an operation answers with pages.
func forPeople(target string) bool {
	return strings.HasPrefix(target, "/oauth2/authorize") || target == logoutPath || strings.HasPrefix(target, "/saml/idp/s") || strings.HasSuffix(target, "/start") || strings.HasSuffix(target, "/logged-out") || strings.HasSuffix(target, "/slo")
}

func tenantStates(t *testing.T, w *world, c *client) {
	stranger := &client{server: c.server, host: "nobody.test", token: c.token}
	for target, methods := range targets("d") {
		for _, method := range methods {
			if target == "/oauth2/token" {
				continue
			}
			code := "tenant_not_found"
			if forPeople(target) {
				code = ""
			}
			stranger.want(t, 404, code, method, target, body)
		}
	}
	// The host decides, in any spelling, and no other header does.
	for _, host := range []string{strings.ToUpper(c.host), c.host + ":8443", c.host + "."} {
		(&client{server: c.server, host: host, token: c.token}).want(t, 200, "", "GET", "/api/v1/resource-types", nil)
	}
	for _, name := range []string{"X-Forwarded-Host", "Forwarded", "X-Host", "X-Original-Host"} {
		h := http.Header{name: {c.host}, "Authorization": {"Bearer " + c.token}}
		equal(t, name, stranger.send(t, "GET", "/api/v1/resource-types", h, nil).code(), "tenant_not_found")
	}
	equal(t, "localhost", (&client{server: c.server, host: "localhost"}).do(t, "GET", "/.well-known/jwks.json", nil).code(), "tenant_not_found")

	tenant, err := w.tenants.TenantByHost(t.Context(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	states := func(changed controlplane.Tenant, err error, status int, code string, published int) {
		if err != nil {
			t.Fatal(err)
		}
		state := changed.State
		for target, methods := range targets("d") {
			for _, method := range methods {
				a := c.do(t, method, target, body)
				if strings.HasPrefix(target, "/.well-known/") {
					equal(t, string(state)+" "+target, a.status, published)
				} else if a.status != status || a.code() != code && !forPeople(target) {
					t.Errorf("%s: %s %s: %d %q, want %d %q", state, method, target, a.status, a.code(), status, code)
				}
			}
		}
	}
	suspended, err := w.tenants.Suspend(t.Context(), tenant.ID, "", eventlog.Origin{})
	states(suspended, err, 403, "tenant_suspended", 200)
	ended, err := w.tenants.Decommission(t.Context(), tenant.ID, eventlog.Origin{})
	states(ended, err, 410, "tenant_decommissioned", 410)
}

func malformed(t *testing.T, _ *world, c *client) {
	define(t, c)
	nested := func(n int) string {
		return `{"type":"document","external_id":"x","attributes":` + strings.Repeat(`{"a":`, n-1) + "0" + strings.Repeat("}", n-1) + `}`
	}
	const target = "/api/v1/resources"
	for name, text := range map[string]string{
		"empty":           "",
		"not JSON":        "type=document",
		"cut":             `{"type":"document"`,
		"trailing":        `{"type":"document","external_id":"x"} {}`,
		"repeated name":   `{"type":"document","external_id":"x","type":"folder"}`,
		"repeated deep":   `{"type":"document","external_id":"x","attributes":{"a":1,"a":2}}`,
		"repeated, other": `{"type":"document","external_id":"x","other":{"a":1,"\u0061":2}}`,
		"broken UTF-8":    "{\"type\":\"document\",\"external_id\":\"\xff\"}",
		"lone surrogate":  `{"type":"document","external_id":"\ud800"}`,
		"comment":         `{"type":"document",/* no */"external_id":"x"}`,
		"single quotes":   `{'type':'document'}`,
		"too deep":        nested(33),
		"far too deep":    strings.Repeat("[", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			c.want(t, 400, "invalid_json", "POST", target, text)
		})
	}
	c.want(t, 201, "", "POST", target, nested(32))
	a := c.want(t, 400, "validation_failed", "POST", target, `{"Type":"document","EXTERNAL_ID":"x"}`)
	equal(t, "wrong case", fields(a), []string{"type", "external_id"})
	for _, text := range []string{"[]", `"x"`, "1", "null", " null\n"} {
		c.want(t, 400, "validation_failed", "POST", target, text)
	}
	c.want(t, 200, "", "POST", target, `{"type":"document","external_id":"x","unknown":{"deep":[1]}}`)

	// The same is true of every operation that takes such a body.
	for target, methods := range targets("x") {
		for _, method := range methods {
			route := scopeOf(t, method, target)
			if route == "" || !takesJSON(t, method, target) {
				continue
			}
			c.want(t, 400, "invalid_json", method, target, `{"a":1,"a":2}`)
			c.want(t, 413, "payload_too_large", method, target, `"`+long(1<<20)+`"`)
			for _, mediaType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json2", "application/json;;"} {
				a := c.send(t, method, target, http.Header{"Content-Type": {mediaType}}, []byte("{}"))
				if a.status != 415 || a.code() != "unsupported_media_type" {
					t.Errorf("%s %s with %q: %d %s", method, target, mediaType, a.status, a.text)
				}
			}
			a := c.send(t, method, target, http.Header{"Content-Type": {"Application/JSON; charset=utf-8"}}, []byte("{"))
			equal(t, "a media type with a parameter", a.code(), "invalid_json")
		}
	}
}

func takesJSON(t *testing.T, method, target string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	route, _, err := document().router.FindRoute(req)
	if err != nil {
		t.Fatal(err)
	}
	return route.Operation.RequestBody != nil && route.Operation.RequestBody.Value.Content.Get("application/json") != nil
}

func routing(t *testing.T, _ *world, c *client) {
	define(t, c)
	for _, target := range []string{"/index.html", "/api", "/api/v1", "/api/v2/resources", "/api/v1/resources/", "//api/v1/resources", "/api/v1/../v1/resources", "/oauth2/nothing", "/healthz", "/metrics"} {
		c.want(t, 404, "not_found", "GET", target, nil)
	}
	for target, methods := range targets("d") {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
			if slices.Contains(methods, method) {
				continue
			}
			if route, _, err := document().router.FindRoute(mustRequest(t, method, target)); err == nil {
				t.Fatalf("%s %s: the document has %s", method, target, route.Operation.OperationID)
			}
			a := c.do(t, method, target, nil)
			allow := strings.Split(a.header.Get("Allow"), ", ")
			want := slices.Clone(methods)
			if slices.Contains(want, "GET") {
				want = append(want, "HEAD")
			}
			slices.Sort(want)
			if a.status != 405 || a.code() != "method_not_allowed" || !slices.Equal(allow, want) {
				t.Errorf("%s %s: %d %s, Allow is %v, want %v", method, target, a.status, a.text, allow, want)
			}
		}
	}
	head := c.do(t, "HEAD", "/api/v1/resource-types", nil)
	equal(t, "HEAD", head.status, 200)
	equal(t, "body of HEAD", head.text, "")
	h := http.Header{"X-Http-Method-Override": {"DELETE"}, "X-Request-Id": {"mine"}}
	a := c.send(t, "GET", "/api/v1/resource-types/document", h, nil)
	equal(t, "method override", a.status, 200)
	if a.header.Get("X-Request-Id") == "mine" {
		t.Error("the caller chose the request id")
	}
	equal(t, "Cache-Control", a.header.Get("Cache-Control"), "no-store")
	equal(t, "Strict-Transport-Security", a.header.Get("Strict-Transport-Security"), "max-age=31536000")
}

func mustRequest(t *testing.T, method, target string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}
