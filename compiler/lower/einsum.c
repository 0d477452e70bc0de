/* einsum; of more than two operands the first two become one, and so on. Letters of the result that both operands have are batch dims, letters of one operand
 * only are rows or columns, letters without place in the result are summed; letters of one operand alone that are
 * summed are summed first. "bhid,bhjd->bhij" is a matrix product with batch b,h, rows i, columns j, inner dim d. */
#include "compiler/lower/families.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct term {
  struct tensor t;
  char letter[3 * SW_MAX_RANK + 1];
};

static int place(const char *letters, char c)
{
  const char *at = strchr(letters, c);
  return at && c ? (int)(at - letters) : -1;
}

enum { MAX_TERMS = 8, MAX_DOTS = 10 };

/* The equation with "..." spelled out as labels 0 to 9, of two dims "89", so that they meet from the last; and with the
 * result that is meant when it names none: "...", then the letters that occur once. NULL: it does not fit its operands. */
static const char *spelled_out(struct lower *l, const char *equation, const struct sw_arg *list)
{
  struct sw_buf b = {.arena = l->arena};
  int most = 0, k = 0;
  const char *arrow = strstr(equation, "->");
  for (const char *p = equation; *p; k++) {
    size_t len = strcspn(p, ",-"), named = 0;
    for (size_t i = 0; i < len; i++)
      named += isalpha((unsigned char)p[i]) != 0;
    bool operand = k < list->list.n && (!arrow || p < arrow) && lw_is_tensor(l, &list->list.v[k]);
    int dots = operand ? l->graph->values.v[list->list.v[k].value].rank - (int)named : most;
    for (size_t i = 0; i < len; i++) {
      if (strncmp(p + i, "...", 3)) {
        sw_buf_add(&b, p + i, 1);
        continue;
      }
      if (dots < 0 || dots > MAX_DOTS)
        return NULL;
      most = dots > most ? dots : most;
      for (int d = MAX_DOTS - dots; d < MAX_DOTS; d++)
        sw_buf_printf(&b, "%d", d);
      i += 2;
    }
    p += len;
    size_t between = strspn(p, ",->");
    sw_buf_add(&b, p, between);
    p += between;
  }
  if (arrow)
    return sw_buf_text(&b);
  const char *terms = sw_arena_strdup(l->arena, sw_buf_text(&b));
  sw_buf_puts(&b, "->");
  for (char c = '0'; c <= 'z'; c++) {
    const char *at = isalnum((unsigned char)c) ? strchr(terms, c) : NULL;
    if (at && (c <= '9' || !strchr(at + 1, c)))
      sw_buf_add(&b, &c, 1);
  }
  return sw_buf_text(&b);
}

/* "ij,jk->ik" into terms and result; spaces don't count. False for other forms. */
static bool parse(const char *equation, int n, struct term *term, char result[SW_MAX_RANK + 1])
{
  int at = 0, k = 0;
  bool arrow = false;
  result[0] = term[0].letter[0] = 0;
  for (const char *s = equation; *s; s++) {
    char *out = arrow ? result : term[k].letter;
    if (*s == ' ')
      continue;
    if (*s == '-' && s[1] == '>' && !arrow) {
      arrow = true;
      at = 0;
      s++;
    } else if (*s == ',' && !arrow && k + 1 < n) {
      term[++k].letter[0] = 0;
      at = 0;
    } else if (isalnum((unsigned char)*s) && at < SW_MAX_RANK && (!arrow || place(out, *s) < 0)) {
      out[at++] = *s;
      out[at] = 0;
    } else {
      return false;
    }
  }
  return arrow && k == n - 1;
}

static void append(char *letters, char c)
{
  size_t n = strlen(letters);
  letters[n] = c;
  letters[n + 1] = 0;
}

/* A letter that stands twice walks the diagonal. */
static void take_diagonals(struct term *a)
{
  for (int d = 0; a->letter[d]; d++)
    for (int e = d + 1; a->letter[e]; e++)
      if (a->letter[e] == a->letter[d]) {
        a->t.stride[d] += a->t.stride[e];
        a->t = lw_squeeze(a->t, e);
        memmove(&a->letter[e], &a->letter[e + 1], strlen(&a->letter[e]));
        e--;
      }
}

/* Sums the letters that only this term has and the result has not. */
static void sum_own(struct lower *l, struct term *a, const char *other, const char *result)
{
  uint32_t dims = 0;
  char left[3 * SW_MAX_RANK + 1] = "";
  for (int d = 0; a->letter[d]; d++)
    if (place(other, a->letter[d]) < 0 && place(result, a->letter[d]) < 0)
      dims |= 1u << d;
    else
      append(left, a->letter[d]);
  if (!dims)
    return;
  a->t = lw_reduce(l, SW_OP_SUM, a->t, dims, false);
  strcpy(a->letter, left);
}

/* The dims of a term in the order of `letters`; a missing letter is a dim of size 1. */
static struct tensor arrange(const struct term *a, const char *letters)
{
  struct tensor t = a->t;
  t.rank = 0;
  for (; *letters; letters++) {
    int d = place(a->letter, *letters);
    t.size[t.rank] = d < 0 ? 1 : a->t.size[d];
    t.stride[t.rank++] = d < 0 ? 0 : a->t.stride[d];
  }
  return t;
}

/* Letters of a (in its order) that are / are not in b and in the result. */
static void select_letters(const char *a, const char *b, bool in_b, const char *result, bool in_result, char *out)
{
  for (; *a; a++)
    if ((place(b, *a) >= 0) == in_b && (place(result, *a) >= 0) == in_result)
      append(out, *a);
}

static int64_t count(const struct term *a, const char *letters)
{
  int64_t n = 1;
  for (; *letters; letters++)
    n *= a->t.size[place(a->letter, *letters)];
  return n;
}

/* [batch.., rows, inner]: the last two groups of letters joined to one dim each. */
static struct tensor as_matrix(struct lower *l, const struct term *a, const char *batch, const char *rows, const char *columns)
{
  char order[3 * SW_MAX_RANK + 1];
  snprintf(order, sizeof order, "%s%s%s", batch, rows, columns);
  struct tensor t = arrange(a, order);
  int64_t size[SW_MAX_RANK];
  int rank = (int)strlen(batch);
  memcpy(size, t.size, sizeof size);
  size[rank] = count(a, rows);
  size[rank + 1] = count(a, columns);
  return lw_reshape(l, t, rank + 2, size);
}

static struct tensor contract(struct lower *l, struct term *a, struct term *b, const char *result)
{
  char batch[SW_MAX_RANK + 1] = "", rows[SW_MAX_RANK + 1] = "", columns[SW_MAX_RANK + 1] = "", inner[SW_MAX_RANK + 1] = "";
  select_letters(a->letter, b->letter, true, result, true, batch);
  select_letters(a->letter, b->letter, false, result, true, rows);
  select_letters(b->letter, a->letter, false, result, true, columns);
  select_letters(a->letter, b->letter, true, result, false, inner);
  struct term product;
  snprintf(product.letter, sizeof product.letter, "%s%s%s", batch, rows, columns);
  if (strlen(product.letter) + strlen(inner) > SW_MAX_RANK)
    return lw_refuse(l, "write it as matmul, permute and sum", "einsum over more than %d letters", SW_MAX_RANK);
  if (!inner[0]) { /* an outer product */
    struct tensor x = arrange(a, product.letter), y = arrange(b, product.letter);
    product.t = lw_binary(l, SW_OP_MUL, x, y);
  } else {
    struct tensor x = as_matrix(l, a, batch, rows, inner), y = as_matrix(l, b, batch, inner, columns);
    int64_t size[SW_MAX_RANK];
    int rank = 0;
    for (const char *c = product.letter; *c; c++) {
      const struct term *owner = place(a->letter, *c) >= 0 ? a : b;
      size[rank++] = owner->t.size[place(owner->letter, *c)];
    }
    product.t = lw_reshape(l, lw_matmul(l, x, y), rank, size);
  }
  return lw_known(product.t) ? arrange(&product, result) : product.t;
}

/* Letters of the first term and term i that the result or a later term has; at the end those of the result, in its order. */
static bool letters_kept(const struct term *term, int i, int n, const char *result, char kept[SW_MAX_RANK + 1])
{
  kept[0] = 0;
  if (i == n - 1) {
    strcpy(kept, result);
    return true;
  }
  const char *own[] = {term[0].letter, term[i].letter};
  for (int side = 0; side < 2; side++)
    for (const char *c = own[side]; *c; c++) {
      bool needed = place(result, *c) >= 0;
      for (int k = i + 1; k < n; k++)
        needed = needed || place(term[k].letter, *c) >= 0;
      if (!needed || place(kept, *c) >= 0)
        continue;
      if (strlen(kept) == SW_MAX_RANK)
        return false;
      append(kept, *c);
    }
  return true;
}

void lw_op_einsum(struct lower *l, int unused)
{
  (void)unused;
  const struct sw_arg *equation = lw_arg(l, "equation"), *list = lw_arg(l, "tensors");
  int n = list->kind == SW_ARG_LIST ? list->list.n : 0;
  struct term term[MAX_TERMS];
  char result[SW_MAX_RANK + 1];
  const char *text = equation->kind == SW_ARG_STR ? spelled_out(l, equation->s, list) : NULL;
  if (!text || n < 1 || n > MAX_TERMS || !parse(text, n, term, result)) {
    lw_refuse(l, "write it as matmul, permute and sum", "einsum \"%s\" of %d operands",
              equation->kind == SW_ARG_STR ? equation->s : "", n);
    return;
  }
  enum sw_dtype t = lw_result_dtype(l, 0);
  for (int i = 0; i < n; i++) {
    term[i].t = lw_argument(l, &list->list.v[i], t);
    if (!lw_known(term[i].t)) {
      lw_set(l, 0, lw_unknown());
      return;
    }
    take_diagonals(&term[i]);
  }
  for (int i = 0; i < n; i++) {
    char others[MAX_TERMS * (3 * SW_MAX_RANK + 1)] = "";
    for (int k = 0; k < n; k++)
      if (k != i)
        strcat(others, term[k].letter);
    sum_own(l, &term[i], others, result);
  }
  for (int i = 1; i < n && lw_known(term[0].t); i++) {
    char kept[SW_MAX_RANK + 1];
    if (!letters_kept(term, i, n, result, kept)) {
      lw_refuse(l, "write it as matmul, permute and sum", "einsum over more than %d letters", SW_MAX_RANK);
      return;
    }
    term[0].t = contract(l, &term[0], &term[i], kept);
    strcpy(term[0].letter, kept);
  }
  lw_set(l, 0, n > 1 ? term[0].t : arrange(&term[0], result));
}
