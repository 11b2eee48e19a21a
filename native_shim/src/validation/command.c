/* Commands, as long as something may be compared with them. */
#include <stdlib.h>

#include "validation/validation.h"

struct clock command_host_knows;

void command_drop(struct command *command) {
    if (command && !--command->holds)
        free(command);
}

bool command_precedes(const struct command *first, const struct command *second) {
    return first->position && second->clock.at[first->chain] >= first->position;
}

bool command_races(const struct command *first, const struct command *second) {
    return first->position && second->position && !first->is_gated && !second->is_gated &&
           !command_precedes(first, second);
}

bool command_is_over(const struct command *command) {
    return !command->position || command_host_knows.at[command->chain] >= command->position;
}

void use_drop(struct use **link) {
    struct use *use = *link;
    *link = use->next;
    command_drop(use->command);
    free(use);
}

void object_forget_uses(struct known *known) {
    while (known->uses)
        use_drop(&known->uses);
    while (known->mappings) {
        struct mapping *mapping = known->mappings;
        known->mappings = mapping->next;
        free(mapping);
    }
    command_drop(known->command);
    known->command = NULL;
}
