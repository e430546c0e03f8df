package openfga

// organizationSamples restate the published sample stores about teams, roles and
// modules.
var organizationSamples = []sample{
	{
		name: "github",
		files: folder("store.fga.yaml", `model: |
  model
    schema 1.1
  type user
  type team
    relations
      define member: [user, team#member]
  type organization
    relations
      define owner: [user]
      define member: [user] or owner
      define repo_admin: [user, organization#member]
  type repo
    relations
      define owner: [organization]
      define admin: [user, team#member] or repo_admin from owner
      define writer: [user, team#member] or admin
      define reader: [user, team#member] or writer
tuples:
  - {user: user:ann, relation: member, object: team:core}
  - {user: team:core#member, relation: member, object: team:all}
  - {user: team:all#member, relation: reader, object: repo:x}
  - {user: organization:acme, relation: owner, object: repo:x}
  - {user: organization:acme#member, relation: repo_admin, object: organization:acme}
  - {user: user:eve, relation: owner, object: organization:acme}
tests:
  - check:
      - {user: user:ann, object: repo:x, assertions: {reader: true, writer: false}}
      - {user: user:eve, object: repo:x, assertions: {admin: true}}
      - {user: "team:core#member", object: repo:x, assertions: {reader: true}}
`),
		types: `
team
.member [user team#member]
organization
.owner [user]
.member this owner [user]
.repo_admin [user organization#member]
repo
.owner [organization]
.admin this owner->repo_admin [user team#member]
.writer this admin [user team#member]
.reader this writer [user team#member]
`,
		relations: `
team:core#member@user:ann
team:all#member@team:core#member
repo:x#reader@team:all#member
repo:x#owner@organization:acme
organization:acme#repo_admin@organization:acme#member
organization:acme#owner@user:eve
`,
		assertions: `
28: may user:ann reader repo:x? [allowed]
28: may user:ann writer repo:x? [denied]
29: may user:eve admin repo:x? [allowed]
30: may team:core#member reader repo:x? [allowed]
`,
	},
	{
		name: "expenses",
		files: folder("store.fga.yaml", `model: |
  model
    schema 1.1
  type employee
    relations
      define manager: [employee]
      define can_manage: manager or can_manage from manager
  type report
    relations
      define submitter: [employee]
      define approver: can_manage from submitter
tuples:
  - {user: employee:boss, relation: manager, object: employee:lead}
  - {user: employee:lead, relation: manager, object: employee:ann}
  - {user: employee:ann, relation: submitter, object: report:trip}
tests:
  - list_objects:
      - {user: "employee:boss", type: report, assertions: {approver: ["report:trip"], submitter: []}}
`),
		types: `
employee
.manager [employee]
.can_manage manager manager->can_manage
report
.submitter [employee]
.approver submitter->can_manage
`,
		relations: `
employee:lead#manager@employee:boss
employee:ann#manager@employee:lead
report:trip#submitter@employee:ann
`,
		assertions: `
18: which report may employee:boss approver? [trip]
18: which report may employee:boss submitter? []
`,
	},
	{
		name: "custom roles",
		files: folder("store.fga.yaml", `model: |
  model
    schema 1.1
  type user
  type role
    relations
      define assignee: [user, org#member]
  type org
    relations
      define owner: [user]
      define member: [user] or owner
      define asset_editor: [role#assignee] or owner
  type asset-category
    relations
      define org: [org]
      define editor: [role#assignee] or asset_editor from org
  type asset
    relations
      define category: [asset-category]
      define edit: [role#assignee] or editor from category
      define view: [role#assignee] or edit
tuples:
  - {user: user:ann, relation: assignee, object: role:designer}
  - {user: role:designer#assignee, relation: edit, object: asset:logo}
  - {user: org:acme, relation: org, object: asset-category:logos}
  - {user: asset-category:logos, relation: category, object: asset:logo}
  - {user: user:eve, relation: owner, object: org:acme}
tests:
  - check:
      - {user: user:ann, object: asset:logo, assertions: {view: true}}
      - {user: user:eve, object: asset-category:logos, assertions: {editor: true}}
    list_objects:
      - {user: user:eve, type: asset-category, assertions: {editor: [asset-category:logos]}}
`),
		types: `
role
.assignee [user org#member]
org
.owner [user]
.member this owner [user]
.asset_editor this owner [role#assignee]
asset_category
.org [org]
.editor this org->asset_editor [role#assignee]
asset
.category [asset_category]
.edit this category->editor [role#assignee]
.view this edit [role#assignee]
!edit is edit
!view is view
`,
		relations: `
role:designer#assignee@user:ann
asset:logo#edit@role:designer#assignee
asset_category:logos#org@org:acme
asset:logo#category@asset_category:logos
org:acme#owner@user:eve
`,
		report: `renamed store.fga.yaml:13: type "asset-category" is called "asset_category"`,
		assertions: `
30: may user:ann view asset:logo? [allowed]
31: may user:eve editor asset_category:logos? [allowed]
33: which asset_category may user:eve editor? [logos]
`,
	},
	{
		name: "roles of several tenants, groups as themselves",
		files: folder("store.fga.yaml", `model: |
  model
    schema 1.1
  type user
  type group
    relations
      define member: [user, group#member]
  type role
    relations
      define assignee: [user, role#assignee, group#member]
  type organization
    relations
      define admin: [user, role#assignee]
      define user-manager: [role#assignee] or admin
      define sponsor: [group]
      define canInvite: user-manager
tuples:
  - {user: user:ann, relation: member, object: group:it}
  - {user: group:it#member, relation: assignee, object: role:staff}
  - {user: role:staff#assignee, relation: user-manager, object: organization:acme}
  - {user: group:it, relation: sponsor, object: organization:acme}
tests:
  - check:
      - {user: user:ann, object: organization:acme, assertions: {canInvite: true, user-manager: true, sponsor: false}}
      - {user: group:it, object: organization:acme, assertions: {sponsor: true}}
`),
		types: `
group_2
.member [user group_2#member]
role
.assignee [user role#assignee group_2#member]
organization
.admin [user role#assignee]
.user_manager this admin [role#assignee]
.sponsor [group_2]
.caninvite user_manager
!canInvite is caninvite
!user-manager is user_manager
`,
		relations: `
group_2:it#member@user:ann
role:staff#assignee@group_2:it#member
organization:acme#user_manager@role:staff#assignee
organization:acme#sponsor@group_2:it
`,
		report: `
renamed store.fga.yaml:5: type "group" is called "group_2"
renamed store.fga.yaml:16: relation "canInvite" is called "caninvite"
renamed store.fga.yaml:14: relation "user-manager" is called "user_manager"
`,
		assertions: `
24: may user:ann canInvite organization:acme? [allowed]
24: may user:ann user-manager organization:acme? [allowed]
24: may user:ann sponsor organization:acme? [denied]
25: may group_2:it sponsor organization:acme? [allowed]
`,
	},
	{
		name: "role assignments",
		files: folder("store.fga.yaml", `model: |
  model
    schema 1.1
  type user
  type role
    relations
      define can_edit_project: [user:*]
      define can_view_project: [user:*]
  type role_assignment
    relations
      define assignee: [user]
      define role: [role]
      define can_edit_project: assignee and can_edit_project from role
      define can_view_project: assignee and can_view_project from role
  type project
    relations
      define blocked: [user]
      define role_assignment: [role_assignment]
      define can_view: can_view_project from role_assignment but not blocked
      define can_edit: (can_edit_project from role_assignment or can_view) but not blocked
tuples:
  - {user: "user:*", relation: can_view_project, object: role:reader}
  - {user: role:reader, relation: role, object: role_assignment:1}
  - {user: user:ann, relation: assignee, object: role_assignment:1}
  - {user: role_assignment:1, relation: role_assignment, object: project:x}
tests:
  - name: as it is
    check:
      - {user: user:ann, object: project:x, assertions: {can_view: true}}
      - {user: user:bob, object: project:x, assertions: {can_view: false}}
  - name: with a block
    tuples:
      - {user: user:ann, relation: blocked, object: project:x}
    check:
      - {user: user:ann, object: project:x, assertions: {can_view: false}}
`),
		types: `
role
.can_edit_project [user:*]
.can_view_project [user:*]
role_assignment
.assignee [user]
.role [role]
.can_edit_project (assignee & role->can_edit_project)
.can_view_project (assignee & role->can_view_project)
project
.blocked [user]
.role_assignment [role_assignment]
.can_view (role_assignment->can_view_project - blocked)
.can_edit ((role_assignment->can_edit_project + can_view) - blocked)
`,
		relations: `
role:reader#can_view_project@user:*
role_assignment:1#role@role:reader
role_assignment:1#assignee@user:ann
project:x#role_assignment@role_assignment:1
`,
		assertions: `
29: may user:ann can_view project:x? [allowed]
30: may user:bob can_view project:x? [denied]
35: may user:ann can_view project:x? [denied] with [project:x#blocked@user:ann]
`,
	},
	{
		name: "modular",
		read: "auth/core.fga.yaml",
		files: folder("auth/fga.mod", `schema: '1.2'
contents:
  - core.fga
  - tracker/projects.fga
  - wiki.fga
`, "auth/core.fga", `module core

type user

type organization
  relations
    define admin: [user]
    define member: [user] or admin
`, "auth/tracker/projects.fga", `module tracker

extend type organization
  relations
    define can-create-project: admin

type project
  relations
    define organization: [organization]
    define viewer: member from organization
`, "auth/wiki.fga", `# About pages.
module wiki

type page
  relations
    define owner: [user with weekdays]

condition weekdays(day: int) {
  day < 6
}
`, "auth/core.fga.yaml", `model_file: ./fga.mod
tuple_file: data/core.yaml
tests:
  - check:
      - {user: user:ann, object: project:x, assertions: {viewer: true}}
      - {user: user:ann, object: organization:acme, assertions: {can-create-project: true}}
`, "auth/data/core.yaml", `- {user: user:ann, relation: admin, object: organization:acme}
- {user: organization:acme, relation: organization, object: project:x}
`),
		types: `
organization
.admin [user]
.member this admin [user]
.can_create_project admin
!can-create-project is can_create_project
project
.organization [organization]
.viewer organization->member
page
.owner [user]
?weekdays[{day int}] day < 6
`,
		relations: `
organization:acme#admin@user:ann
project:x#organization@organization:acme
`,
		report: `
renamed auth/tracker/projects.fga:5: relation "can-create-project" is called "can_create_project"
widened auth/wiki.fga:6: any tuple of page#owner may stand on any condition of page, or on none
`,
		assertions: `
5: may user:ann viewer project:x? [allowed]
6: may user:ann can-create-project organization:acme? [allowed]
`,
	},
}
