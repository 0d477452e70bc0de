"""The table of all cases, in the order of the reports, and the reports that are no test of a compile."""
import cases_found
import cases_layout
import cases_plan
import cases_types
import cases_views

CASES = sorted(cases_layout.CASES + cases_views.CASES + cases_types.CASES + cases_plan.CASES + cases_found.CASES, key=lambda c: c.number)

SKIPPED = {
    "BR-62 to BR-71": "the service: tests/http",
}
