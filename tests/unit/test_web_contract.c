/* SPDX-License-Identifier: MIT */
/* The contract has all that the tables have, and nothing that they have not. */
#include "common/auth/auth.h"
#include "common/model/job_state.h"
#include "webapp/openapi.h"
#include "webapp/openapi_impl.h"

#include "tests/support/test.h"

extern const char openapi_source[];

static json_t *document;
static json_t *source;

/* "a.b.c", each a member of the one before. */
static json_t *at(json_t *root, const char *path)
{
    char name[64];
    while (root && *path) {
        size_t length = strcspn(path, "/");
        (void)snprintf(name, sizeof(name), "%.*s", (int)length, path);
        root = json_object_get(root, name);
        path += length + (path[length] == '/');
    }
    return root;
}

static json_t *schema(const char *path)
{
    json_t *found = at(at(document, "components/schemas"), path);
    if (!found)
        fail_msg("there is no schema %s", path);
    return found;
}

static void every_route_is_an_operation_and_nothing_else_is(void **unused)
{
    (void)unused;
    static const char *const methods[] = {"get", "put", "post", "delete"};
    size_t operations = 0;
    const char *path = NULL;
    json_t *item = NULL;
    json_object_foreach(at(document, "paths"), path, item)
    {
        assert_null(strstr(path, "..."));
        assert_non_null(json_object_get(item, "parameters"));
        operations += json_object_size(item) - 1;
    }
    assert_int_equal(operations, ROUTE_COUNT);
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        char plain[OPENAPI_TEXT_SIZE];
        size_t length = strcspn(routes[i].path, ".");
        bool dots = strncmp(routes[i].path + length, "...}", 4) == 0;
        (void)snprintf(plain, sizeof(plain), "%.*s%s", (int)length, routes[i].path,
                       dots ? "}" : routes[i].path + length);
        json_t *operation =
            at(json_object_get(at(document, "paths"), plain), methods[routes[i].method]);
        if (!operation)
            fail_msg("there is no operation %s", routes[i].name);
        assert_string_equal(json_string_value(at(operation, "operationId")), routes[i].name);
        assert_int_equal(json_object_get(operation, "requestBody") != NULL,
                         route_has_body(&routes[i]));
    }
}

/* ---- references and components --------------------------------------------------------------- */

static void collect(json_t *value, json_t *references)
{
    size_t i = 0;
    const char *name = NULL;
    json_t *item = NULL;
    if (json_is_array(value)) {
        json_array_foreach(value, i, item) collect(item, references);
    }
    json_object_foreach(value, name, item)
    {
        if (strcmp(name, "$ref") == 0)
            json_object_set_new(references, json_string_value(item), json_true());
        collect(item, references);
    }
}

/* Takes the reference out; false: there was none. */
static bool take_reference(json_t *references, const char *kind, const char *name)
{
    char text[200];
    (void)snprintf(text, sizeof(text), "#/components/%s/%s", kind, name);
    return json_object_del(references, text) == 0;
}

static void take_references(json_t *references, const char *kind, json_t *components)
{
    const char *name = NULL;
    json_t *item = NULL;
    json_object_foreach(components, name, item)
    {
        if (!take_reference(references, kind, name) &&
            strcmp(name, "Problem405") != 0) /* of a path, not of an operation */
            fail_msg("nothing refers to %s %s", kind, name);
    }
}

static void every_reference_leads_to_a_component_and_each_of_them_is_used(void **unused)
{
    (void)unused;
    json_t *references = json_object();
    const char *name = NULL;
    json_t *item = NULL;
    collect(document, references);
    json_object_foreach(at(document, "components"), name, item)
    {
        if (strcmp(name, "securitySchemes") != 0)
            take_references(references, name, item);
    }
    json_object_foreach(references, name, item) fail_msg("there is no %s", name);
    json_decref(references);
}

/* ---- what openapi.json holds beside them ----------------------------------------------------- */

static void is_a_route(const char *table, const char *name)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (strcmp(routes[i].name, name) == 0)
            return;
    }
    fail_msg("%s of openapi.json names %s, which is no route", table, name);
}

static void are_routes(const char *table, json_t *list)
{
    size_t i = 0;
    json_t *item = NULL;
    json_array_foreach(list, i, item) is_a_route(table, json_string_value(item));
}

static void the_tables_of_the_contract_name_routes(void **unused)
{
    (void)unused;
    const char *name = NULL;
    json_t *item = NULL;
    json_object_foreach(at(source, "x-statuses"), name, item) is_a_route("x-statuses", name);
    json_object_foreach(at(source, "x-refusals"), name, item) is_a_route("x-refusals", name);
    json_object_foreach(at(source, "x-headers"), name, item)
        are_routes("x-headers", at(item, "routes"));
    are_routes("x-optional-bodies", at(source, "x-optional-bodies"));
}

/* ---- the other tables ------------------------------------------------------------------------ */

static void is_listed(json_t *list, const char *word)
{
    if (!openapi_has_word(list, word))
        fail_msg("the contract does not know %s", word);
}

static void every_state_condition_and_role_is_in_the_contract(void **unused)
{
    (void)unused;
    json_t *states = schema("Status/enum");
    json_t *conditions = schema("Condition/enum");
    json_t *roles = schema("Identity/properties/roles/items/enum");
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        is_listed(states, job_state_text((enum job_state)i));
    for (int i = JOB_COND_NONE + 1; i < JOB_CONDITION_COUNT; i++)
        is_listed(conditions, job_condition_text((enum job_condition)i));
    for (int i = 0; i < ROLE_COUNT; i++)
        is_listed(roles, role_name((enum role)i));
    assert_int_equal(json_array_size(states), JOB_STATE_COUNT);
    assert_int_equal(json_array_size(conditions), JOB_CONDITION_COUNT - 1);
    assert_int_equal(json_array_size(roles), ROLE_COUNT);
}

static void every_member_of_a_request_is_in_the_contract(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        bool of_app;
    } members[] = {
#define MEMBER(id, name, of_app) {name, of_app},
#include "common/model/job_member.def"
#undef MEMBER
    };
    json_t *request = schema("JobRequest/properties");
    json_t *app = schema("AppPut/properties");
    size_t of_app = 0;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (!json_object_get(request, members[i].name))
            fail_msg("JobRequest has no %s", members[i].name);
        if ((json_object_get(app, members[i].name) != NULL) != members[i].of_app)
            fail_msg("AppPut and %s", members[i].name);
        of_app += members[i].of_app;
    }
    assert_int_equal(json_object_size(request), ARRAY_LEN(members));
    assert_int_equal(json_object_size(app), of_app);
}

static void every_error_is_in_the_response_of_its_status(void **unused)
{
    (void)unused;
    for (int code = ERR_OK + 1; code < ERR_CODE_COUNT; code++) {
        char path[64];
        char text[32];
        if (code == ERR_GONE)
            continue; /* no route answers it */
        (void)snprintf(path, sizeof(path), "components/responses/Problem%d",
                       err_http((enum err_code)code));
        (void)snprintf(text, sizeof(text), "SLUICE-%d", err_number((enum err_code)code));
        json_t *problem = at(document, path);
        json_t *parts = json_object_get(
            at(json_object_get(at(problem, "content"), "application/problem+json"), "schema"),
            "allOf");
        is_listed(at(json_array_get(parts, 1), "properties/code/enum"), text);
    }
}

static void every_body_has_an_example(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (route_has_body(&routes[i]) &&
            json_array_size(json_object_get(schema(routes[i].body), "examples")) == 0)
            fail_msg("%s has no examples", routes[i].body);
    }
}

static int read_contract(void **unused)
{
    (void)unused;
    document = openapi_document();
    source = json_loads(openapi_source, 0, NULL);
    return document && source ? 0 : -1;
}

static int drop_contract(void **unused)
{
    (void)unused;
    json_decref(document);
    json_decref(source);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_route_is_an_operation_and_nothing_else_is),
        TEST(every_reference_leads_to_a_component_and_each_of_them_is_used),
        TEST(the_tables_of_the_contract_name_routes),
        TEST(every_state_condition_and_role_is_in_the_contract),
        TEST(every_member_of_a_request_is_in_the_contract),
        TEST(every_error_is_in_the_response_of_its_status),
        TEST(every_body_has_an_example),
    };
    return cmocka_run_group_tests(tests, read_contract, drop_contract);
}
